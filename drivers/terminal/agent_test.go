package terminal

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/hosttest"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
	"swarmdeck/engine/terminal"
	"swarmdeck/expect"
)

func TestMain(m *testing.M) {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		syscall.Exit(code)
	}
	if code, is := hosttest.Entered(os.Args); is {
		syscall.Exit(code)
	}
	celltest.Begin()
	if err := cell.BecomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// trial is an open agent with what it told.
type trial struct {
	t *testing.T
	h *agent

	mu     sync.Mutex
	health []fleet.Health
	events []fleet.Event
}

func open(t *testing.T, options string, env map[string]string, command ...string) *trial {
	t.Helper()
	return openAt(t, nil, options, env, command...)
}

// openAt is open of one on a host; nil is this machine.
func openAt(t *testing.T, on *hosttest.Box, options string, env map[string]string, command ...string) *trial {
	t.Helper()
	var hosts keeper.Hosts
	place := ""
	if on != nil {
		hosts, place = on, on.Name
	}
	r := NewRuntime(Options{
		Cells: drivertest.Cells(t, cell.Options{Instance: "terminal"}), Dir: t.TempDir(), Grace: 2 * time.Second, Hosts: hosts,
		Secrets: func(_ context.Context, _ string, env map[string]string) (map[string]string, *secret.Mask, error) {
			return env, secret.NewMask(map[string]string{"KEY": "correct horse battery"}), nil
		},
	})
	expect.No(t, r.Check(fleet.Create{Name: "it", Host: place, Command: command, Env: env, Options: core.Raw(options), Profile: "open"}))
	tr := &trial{t: t}
	h, err := r.Open(t.Context(), fleet.Agent{TenantID: "t_x", Name: "it", Host: place, Profile: "open", Command: command, Env: env, Options: core.Raw(options)}, func(h fleet.Health) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.health = append(tr.health, h)
	})
	expect.No(t, err)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	tr.h = h.(*agent)
	return tr
}

// shell is one whose prompt is known.
func shell(t *testing.T) *trial {
	return open(t, `{"quiet_ms":200}`, map[string]string{"PS1": "ready$ ", "ENV": "", "HISTFILE": ""}, "sh", "-i")
}

func (tr *trial) prompt(ctx context.Context, text string) task.Outcome {
	tr.t.Helper()
	out, err := tr.h.Prompt(ctx, fleet.Prompt{TaskID: "tk_1", Message: text, Beat: func() {}, Emit: func(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.events = append(tr.events, e)
		return fleet.ToolAnswer{}, nil
	}})
	expect.No(tr.t, err)
	return out
}

func (tr *trial) asked() (all []string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, e := range tr.events {
		if e.Type == "attention" {
			all = append(all, e.Text)
		}
	}
	return all
}

// until waits for the screen to hold a text.
func (tr *trial) until(what string, ok func(s *terminal.Screen) bool) *terminal.Screen {
	tr.t.Helper()
	ctx, stop := context.WithTimeout(tr.t.Context(), time.Minute)
	defer stop()
	for {
		changed := tr.h.Changed()
		if s := tr.h.Screen(0, 0); ok(s) {
			return s
		}
		select {
		case <-changed:
		case <-ctx.Done():
			tr.t.Fatalf("timed out until %s:\n%s", what, tr.h.Screen(0, 0).Text())
		}
	}
}

func (tr *trial) says(text string) *terminal.Screen {
	tr.t.Helper()
	return tr.until("it says "+text, func(s *terminal.Screen) bool { return strings.Contains(s.Text(), text) })
}

func (tr *trial) types(in ...terminal.Input) {
	tr.t.Helper()
	expect.No(tr.t, tr.h.Type(in))
}

func TestATaskIsTypedAndOverWhenTheProgramWaitsAgain(t *testing.T) {
	tr := shell(t)
	if out := tr.prompt(t.Context(), "echo $((6*7)) is it"); out.Status != task.Succeeded || !strings.Contains(out.Text, "42 is it\nready$") {
		t.Errorf("first: %+v", out)
	}
	if out := tr.prompt(t.Context(), "sleep 0.7; echo later"); out.Status != task.Succeeded || !strings.Contains(out.Text, "\nlater\nready$") || !strings.Contains(out.Text, "42 is it") {
		t.Errorf("second, of the same shell: %+v", out)
	}
	if out := tr.prompt(t.Context(), "exit 3"); out.Status != task.Failed || out.Error.Code != "agent_exit" || !strings.Contains(string(out.Output), `"rc":3`) {
		t.Errorf("an exit: %+v %s", out, out.Output)
	}
	if out := tr.prompt(t.Context(), "exit"); out.Status != task.Succeeded {
		t.Errorf("an exit in another: %+v", out)
	}
}

func TestAProgramSaysItselfHowItIs(t *testing.T) {
	tr := open(t, `{"quiet_ms":200}`, nil, "sh", "-c", `while read -r line; do
printf '\033]777;swarmdeck;working\a'; echo "got $line > "; sleep 0.6
printf '\033]777;swarmdeck;waits;which one?\a'; sleep 0.3
case $line in bad) printf '\033]777;swarmdeck;failed;no luck\a';; *) printf '\033]777;swarmdeck;done\a';; esac; done`)
	if out := tr.prompt(t.Context(), "good"); out.Status != task.Succeeded {
		t.Errorf("%+v", out)
	}
	if got := tr.asked(); len(got) != 1 || got[0] != "which one?" {
		t.Errorf("asked %q", got)
	}
	if out := tr.prompt(t.Context(), "bad"); out.Status != task.Failed || out.Error.Message != "no luck" {
		t.Errorf("%+v", out)
	}
}

func TestABellAsksForAPerson(t *testing.T) {
	tr := open(t, `{"quiet_ms":200, "prompt":"^next> $"}`, nil, "sh", "-c", `printf 'next> '; read -r x; printf '\a[y/n] '; read -r y; echo "said $y"; printf 'next> '; read -r x`)
	done := make(chan task.Outcome, 1)
	go func() { done <- tr.prompt(t.Context(), "begin") }()
	tr.says("[y/n]")
	expect.Await(t, "nobody was asked", func() bool { return len(tr.asked()) != 0 })
	tr.types(terminal.Input{Text: "y"}, terminal.Input{Key: "enter"})
	if out := <-done; out.Status != task.Succeeded || !strings.Contains(out.Text, "said y") {
		t.Errorf("%+v", out)
	}
}

func TestACancelledTaskIsInterruptedAndTheProgramStays(t *testing.T) {
	tr := shell(t)
	_ = tr.prompt(t.Context(), "echo begun")
	pid := tr.h.PID()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	if out := tr.prompt(ctx, "sleep 1000"); out.Status != task.Cancelled {
		t.Errorf("%+v", out)
	}
	if out := tr.prompt(t.Context(), "echo still here"); out.Status != task.Succeeded || tr.h.PID() != pid {
		t.Errorf("%+v, process %d, before %d", out, tr.h.PID(), pid)
	}
	time.AfterFunc(300*time.Millisecond, tr.h.Interrupt)
	began := time.Now()
	if out := tr.prompt(t.Context(), `sh -c 'trap "" INT TERM HUP; while :; do sleep 1000; done'`); out.Status != task.Cancelled {
		t.Errorf("%+v", out)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("a deaf one took %v", took)
	}
}

func TestAPausedTerminalTakesNothing(t *testing.T) {
	tr := shell(t)
	expect.Fails(t, tr.h.Type([]terminal.Input{{Text: "x"}}), "typed into nothing")
	expect.No(t, tr.h.Begin(t.Context()))
	tr.says("ready$")
	expect.No(t, tr.h.Pause(t.Context()))
	expect.Is(t, core.AsError(tr.h.Type([]terminal.Input{{Text: "x"}})).Code, core.Conflict, "typed while paused")
	expect.No(t, tr.h.Resume(t.Context()))
	tr.types(terminal.Input{Text: "echo a$((1+1))b"}, terminal.Input{Key: "enter"})
	tr.says("a2b")
	expect.No(t, tr.h.Resize(terminal.Size{Cols: 77, Rows: 22}))
	tr.types(terminal.Input{Text: "stty size"}, terminal.Input{Key: "enter"})
	if s := tr.says("22 77"); s.Cols != 77 || s.Rows != 22 {
		t.Errorf("size %v", s.Size)
	}
}

func TestASecretIsSeenOnNoScreen(t *testing.T) {
	tr := open(t, `{"quiet_ms":200,"cols":20,"rows":10}`, map[string]string{"PS1": "ready$ "}, "sh", "-i")
	out := tr.prompt(t.Context(), `a='correct horse'; clear; echo "$a battery"; echo; echo "01234567890$a battery"`)
	if strings.Contains(out.Text, "horse battery") || strings.Contains(out.Text, "battery\n") && strings.Contains(out.Text, "correct h\norse") {
		t.Errorf("screen:\n%s", out.Text)
	}
}

func TestAProgramThatCantStartIsSaidToBe(t *testing.T) {
	tr := open(t, `{}`, nil, "sh", "-c", "exit 9")
	expect.No(t, tr.h.Begin(t.Context()))
	tr.until("it has ended", func(s *terminal.Screen) bool { return !s.Runs })
	expect.Await(t, "its health says so", func() bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		return strings.Contains(fmt.Sprint(tr.health), "status 9")
	})
}

func TestBadOptionsAreRefusedByName(t *testing.T) {
	r := NewRuntime(Options{Dir: t.TempDir()})
	for options, field := range map[string]string{
		`{"cols":10}`: "options.cols, options.rows", `{"rows":1000}`: "options.cols, options.rows", `{"prompt":"("}`: "options.prompt",
		`{"quiet_ms":1}`: "options.quiet_ms", `{"interrupt":"\u0000"}`: "options.interrupt", `{"colour":1}`: "colour",
	} {
		err := r.Check(fleet.Create{Name: "it", Command: []string{"sh"}, Options: core.Raw(options)})
		if err == nil || !strings.Contains(fmt.Sprint(err, core.AsError(err).Details), field) {
			t.Errorf("%s: %v", options, err)
		}
	}
}
