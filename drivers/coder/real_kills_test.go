package coder

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// killsEnv is in how many rounds the engine is killed; the usual number is short.
const killsEnv = "SWARMDECK_CODER_KILLS"

// engines is the program, run again and again on one data file.
type engines struct {
	t       *testing.T
	program string
	home    string
	serving *exec.Cmd // nil: none
	said    bytes.Buffer
}

func newEngines(t *testing.T) *engines {
	t.Helper()
	program := expect.Of(celltest.Built("swarmdeck", "build", "swarmdeck"))(t)
	e := &engines{t: t, program: program, home: t.TempDir()}
	t.Cleanup(func() {
		e.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the engines say:\n%s", strings.Join(slices.DeleteFunc(strings.Split(e.said.String(), "\n"), func(line string) bool {
				return strings.HasPrefix(line, "serving ") || strings.Contains(line, "waiting up to")
			}), "\n"))
		}
	})
	return e
}

func (e *engines) command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.program, args...)
	cmd.Dir = e.home
	cmd.Env = []string{"HOME=" + e.home, "PATH=" + os.Getenv("PATH"), "USER=alice", "TERM=dumb", "LANG=C.UTF-8"}
	return cmd
}

// run is a command; it attaches to the engine that serves, if one does.
func (e *engines) run(args ...string) (out string, err error) {
	cmd := e.command(args...)
	var said, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &bad
	if err := cmd.Run(); err != nil {
		return said.String(), fmt.Errorf("%v: %w\n%s", args, err, &bad)
	}
	return said.String(), nil
}

func (e *engines) ok(args ...string) string {
	e.t.Helper()
	return expect.Of(e.run(args...))(e.t)
}

// serve starts an engine.
func (e *engines) serve() {
	e.t.Helper()
	e.serving = e.command("serve")
	e.serving.Stderr = &e.said
	expect.No(e.t, e.serving.Start())
}

// end ends the engine that serves: at once, or in order.
func (e *engines) end(by syscall.Signal) {
	if e.serving == nil {
		return
	}
	_ = e.serving.Process.Signal(by)
	_ = e.serving.Wait() // it was asked to
	e.serving = nil
}

// endAfter ends the engine so when it has served for a time. before is called right before.
func (e *engines) endAfter(d time.Duration, by syscall.Signal, before func()) {
	e.t.Helper()
	timer := time.AfterFunc(d, func() { before(); _ = e.serving.Process.Signal(by) })
	defer timer.Stop()
	_ = e.serving.Wait() // it was asked to
	e.serving = nil
}

// value is a text field of the first record that has it.
func value(out, name string) string {
	_, rest, _ := strings.Cut(out, `"`+name+`":"`)
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

// TestRealKillsAtAnyInstantSendNothingTwice kills the engine, or ends it in order, at
// random instants: when a prompt was just given, while it is sent, while the agent works
// and after. Coder and agentapi are real. Each prompt is in the conversation once, has
// its answer, and nothing was interrupted. SWARMDECK_CODER_KILLS is in how many rounds,
// where somebody has more time.
func TestRealKillsAtAnyInstantSendNothingTwice(t *testing.T) {
	rounds := 6
	if n, err := strconv.Atoi(os.Getenv(killsEnv)); err == nil {
		rounds = n
	}
	d := realCoder(t)
	w := newTerminal(t, d)
	e := newEngines(t)
	options := core.MustEncode(settings{URL: d.url(), TokenFile: tokenFile(t, d.token), Interrupt: "ctrl-c"})
	e.serve()
	expect.Await(t, "the agent is made", func() bool {
		_, err := e.run("agent", "create", w.name, "--project", w.project, "--runtime", "coder", "--options", string(options))
		return err == nil
	})
	idle := func() bool { return value(e.ok("agent", "show", w.name, "-o", "json"), "status") == "idle" }
	until := func(what string, ok func() bool) {
		t.Helper()
		expect.Await(t, what, ok)
	}
	until("idle", idle)
	random := rand.New(rand.NewPCG(3, 5))
	kills, stops, stages := 0, 0, map[string]int{}
	want := make([]string, 0, rounds)
	for n := range rounds {
		name := fmt.Sprintf("job-%d", n)
		text := fmt.Sprintf("do %s %d", name, 2+random.IntN(5))
		want = append(want, text)
		if e.serving == nil {
			e.serve()
		}
		until("idle", idle)
		task := ""
		until("given", func() bool { // an engine that has just begun may not have looked at it yet
			out, err := e.run("agent", "assign", w.name, text, "-o", "json")
			task = value(out, "task_id")
			expect.Must(t, err == nil || strings.Contains(err.Error(), `"status":"starting"`), "%v", err)
			return err == nil
		})
		for left := 1 + random.IntN(3); left > 0; left-- {
			by := syscall.SIGKILL
			if random.IntN(3) == 0 {
				by = syscall.SIGTERM
				stops++
			} else {
				kills++
			}
			// Half are near the sending, which takes a second or two.
			cut := time.Duration(random.IntN(8000)) * time.Millisecond
			if random.IntN(2) == 0 {
				cut /= 4
			}
			e.endAfter(cut, by, func() { stages[w.stage(text)]++ })
			if random.IntN(3) == 0 { // the agent works on alone
				until(text+" is done without an engine", func() bool { at := w.stage(text); return at == "done" || at == "given" })
			}
			e.serve()
		}
		until(text+" done", func() bool {
			out := e.ok("task", "show", task, "-o", "json")
			switch value(out, "status") {
			case "succeeded":
				return true
			case "queued", "running":
				return false
			}
			t.Fatalf("%s: %s", text, out)
			return false
		})
		expect.Has(t, e.ok("result", "show", task, "-o", "json"), "did "+name, text)
		if sent, told := w.users(), w.told(); !slices.Equal(sent, want) || strings.Join(told, "\n") != "told "+strings.Join(want, "\ntold ") {
			t.Fatalf("in the conversation are %q, want %q; the agent was told %q; of the task is in the log\n%s",
				sent, want, told, e.ok("audit", "list", "--match", task, "--page-size", "100", "-o", "json"))
		}
	}
	e.end(syscall.SIGTERM)
	e.ok("audit", "verify")
	e.ok("audit", "reconcile")
	t.Logf("%d prompts given, %d in the conversation; %d kills and %d stops, of what was %v", rounds, len(w.users()), kills, stops, stages)
}
