package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/hosttest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/engine/terminal"
	"swarmdeck/expect"
)

func onHost(t *testing.T) (*trial, *hosttest.Box) {
	t.Helper()
	box := hosttest.New(t, drivertest.Cells(t, cell.Options{}), "t_x", "box", "it")
	return openAt(t, box, `{"quiet_ms":200}`, map[string]string{"PS1": "ready$ ", "ENV": "", "HISTFILE": ""}, "sh", "-i"), box
}

func TestATerminalOnAHostOutlivesItsLink(t *testing.T) {
	tr, box := onHost(t)
	if out := tr.prompt(t.Context(), "echo $((6*7)) in $PWD"); out.Status != task.Succeeded || !strings.Contains(out.Text, "42 in "+box.Work(t, "it")[:20]) {
		t.Errorf("%+v", out)
	}
	pid := tr.h.PID()
	enter := terminal.Input{Key: "enter"}
	for range 3 {
		box.Cut()
		tr.types(terminal.Input{Text: "echo once >> count"}, enter)
		box.Await(t)
	}
	tr.types(terminal.Input{Text: "wc -l < count; echo all; stty size"}, enter)
	tr.says("all\n40 120")
	expect.No(t, tr.h.Resize(terminal.Size{Cols: 77, Rows: 22}))
	tr.types(terminal.Input{Text: "stty size"}, enter)
	tr.says("22 77")
	got := expect.Of(os.ReadFile(filepath.Join(box.Work(t, "it"), "count")))(t)
	expect.Is(t, strings.Count(string(got), "once\n"), 3, "typed", string(got))
	expect.True(t, pid > 0 && tr.h.PID() == pid, "process %d, before %d", tr.h.PID(), pid)
	tr.types(terminal.Input{Text: "stty -echo; read x; stty echo; echo got $x"}, enter)
	expect.Await(t, "what is typed unseen is not said to be", func() bool { return tr.h.Unseen() })
	tr.types(terminal.Input{Text: "it"}, enter)
	tr.says("got it")
	if out := tr.prompt(t.Context(), "sleep 0.7; echo later"); out.Status != task.Succeeded || !strings.Contains(out.Text, "\nlater\nready$") {
		t.Errorf("%+v", out)
	}
	if out := tr.prompt(t.Context(), "exit 3"); out.Status != task.Failed || !strings.Contains(string(out.Output), `"rc":3`) {
		t.Errorf("%+v %s", out, out.Output)
	}
}

func TestAFloodWhileTheLinkIsAwayIsHeldUpAndNotCut(t *testing.T) {
	tr, box := onHost(t)
	expect.No(t, tr.h.Begin(t.Context()))
	tr.says("ready$")
	tr.types(terminal.Input{Text: "sleep 0.5; seq 1 300000 | tail -c 200000; echo th''rough"}, terminal.Input{Key: "enter"})
	box.Cut()
	tr.says("300000\nthrough")
	if tr.until("it is there", func(*terminal.Screen) bool { return true }); strings.Contains(tr.h.Screen(0, 0).Text(), "left out") {
		t.Error("a part was left out")
	}
}

func TestOptionsThatAHostHasNotAreRefused(t *testing.T) {
	r := NewRuntime(Options{Hosts: &hosttest.Box{}})
	for _, options := range []string{`{"read":["/x"]}`, `{"home":"/x"}`, `{"inspect":true}`} {
		if err := r.Check(fleet.Create{Name: "a", Host: "box", Command: []string{"x"}, Options: core.Raw(options)}); err == nil || !strings.Contains(err.Error(), "only cols, rows") {
			t.Errorf("%s: %v", options, err)
		}
	}
}
