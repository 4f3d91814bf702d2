package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func idle(t *testing.T, tr *trial) {
	if h := tr.now(); h.PID != 0 && !tr.Greets {
		t.Errorf("process %d runs before the first prompt", h.PID)
	}
	if err := tr.Runtime.Check(fleet.Create{
		Name: "x", Project: tr.Actor.Project, Role: tr.Actor.Role, Runtime: tr.Actor.Runtime,
		Command: tr.Actor.Command, Env: tr.Actor.Env, Dir: tr.Actor.Dir, Options: tr.Actor.Options,
	}); err != nil {
		t.Errorf("check of the actor: %v", err)
	}
}

func result(t *testing.T, tr *trial) {
	tr.succeed(t, "say hello")
	tr.succeed(t, "say again")
	expect.Is(t, strings.Join(tr.said(), "|"), "hello|again", "messages")
	if tr.Lasting && tr.now().PID == 0 {
		t.Error("no process is reported for an agent that stays")
	}
}

func failure(t *testing.T, tr *trial) {
	out := tr.prompt(t, "fail no paper")
	if out.Status != task.Failed || out.Error == nil || !strings.Contains(out.Error.Message, "no paper") {
		t.Errorf("outcome %s %+v, want failed with its reason", out.Status, out.Error)
	}
	tr.succeed(t, "say on")
}

func busy(t *testing.T, tr *trial) {
	first := tr.start(context.Background(), "say up", "hang")
	eventually(t, "the first prompt runs", func() bool { return len(tr.said()) == 1 })
	_, err := tr.h.Prompt(context.Background(), fleet.Prompt{TaskID: "tk_00000_0000000002", Emit: tr.emit, Beat: func() {}})
	expect.Err(t, err, core.Kind(core.Conflict), "second prompt")
	tr.h.Interrupt()
	wait(t, first)
}

func flood(t *testing.T, tr *trial) {
	const n = 5000
	tr.succeed(t, fmt.Sprintf("flood %d", n))
	said := tr.said()
	if len(said) != n {
		t.Fatalf("%d messages came, want %d", len(said), n)
	}
	for i, s := range said {
		if want := fmt.Sprintf("line %d", i+1); s != want {
			t.Fatalf("message %d is %q, want %q", i, s, want)
		}
	}
}

// answerWith lets every tool request have the same answer.
func (tr *trial) answerWith(a fleet.ToolAnswer) {
	tr.answer = func(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
		a.CallID = e.CallID
		return a, nil
	}
}

func approve(t *testing.T, tr *trial) {
	tr.answerWith(fleet.ToolAnswer{Decision: "approve"})
	tr.succeed(t, `tool write {"path":"a"}`)
	expect.Is(t, strings.Join(tr.said(), "|"), `approve {"path":"a"}`, "the agent heard")
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, e := range tr.events {
		if e.Type != "tool_request" {
			continue
		}
		input := e.Args
		if tr.Input != nil {
			input = tr.Input(e.Args)
		}
		if e.Tool != "write" || string(input) != `{"path":"a"}` || e.CallID == "" {
			t.Errorf("request %+v", e)
		}
	}
}

func edited(t *testing.T, tr *trial) {
	tr.answerWith(fleet.ToolAnswer{Decision: "approve", Args: core.Raw(`{"path":"b"}`)})
	if tr.FixedArgs {
		tr.goesOn(t, `tool write {"path":"a"}`)
		if got := strings.Join(tr.said(), "|"); !strings.HasPrefix(got, "deny") {
			t.Errorf("the agent heard %q, want a denial", got)
		}
		return
	}
	tr.succeed(t, `tool write {"path":"a"}`)
	expect.Is(t, strings.Join(tr.said(), "|"), `approve {"path":"b"}`, "the agent heard")
}

// goesOn plays acts of which the last decision is a denial.
func (tr *trial) goesOn(t *testing.T, acts ...string) {
	t.Helper()
	out := tr.prompt(t, acts...)
	expect.Is(t, out.Status, task.Succeeded, "outcome", out.Error)
}

func deny(t *testing.T, tr *trial) {
	tr.answerWith(fleet.ToolAnswer{Decision: "deny", Reason: "not here"})
	tr.goesOn(t, `tool write {"path":"a"}`, "say on")
	if got := strings.Join(tr.said(), "|"); !strings.HasPrefix(got, "deny") || !strings.HasSuffix(got, "|on") {
		t.Errorf("the agent heard %q", got)
	}
}

// Aborted is the tool whose call is aborted. An actor that can't tell this from
// a denial waits for the end of its prompt then.
const Aborted = "abort"

func abort(t *testing.T, tr *trial) {
	tr.answerWith(fleet.ToolAnswer{Decision: "abort", Reason: "stop it"})
	e := wait(t, tr.start(context.Background(), "tool "+Aborted+` {"path":"a"}`, "say survived", "hang"))
	if e.out.Status != task.Blocked {
		t.Errorf("outcome %s %+v, want blocked", e.out.Status, e.out.Error)
	}
	for _, s := range tr.said() {
		if s == "survived" {
			t.Error("the agent went on")
		}
	}
	tr.answer = nil
	tr.succeed(t, "say next")
}

func many(t *testing.T, tr *trial) {
	const n = 40
	all := make(chan struct{})
	tr.answer = func(ctx context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
		select {
		case <-all:
		case <-ctx.Done():
		}
		return fleet.ToolAnswer{CallID: e.CallID, Decision: "approve"}, ctx.Err()
	}
	done := tr.start(context.Background(), fmt.Sprintf("tools %d", n))
	eventually(t, "all requests wait", func() bool { return tr.asked() == n })
	close(all)
	if e := wait(t, done); e.out.Status != task.Succeeded {
		t.Errorf("outcome %s %+v", e.out.Status, e.out.Error)
	}
	expect.Is(t, strings.Join(tr.said(), "|"), fmt.Sprintf("answered %d", n), "messages")
}

func patient(t *testing.T, tr *trial) {
	tr.answer = func(ctx context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
		}
		return fleet.ToolAnswer{CallID: e.CallID, Decision: "approve"}, ctx.Err()
	}
	tr.succeed(t, `tool write {"path":"a"}`)
	expect.Is(t, strings.Join(tr.said(), "|"), `approve {"path":"a"}`, "the agent heard")
}

func unanswered(t *testing.T, tr *trial) {
	tr.answer = func(context.Context, fleet.Event) (fleet.ToolAnswer, error) {
		return fleet.ToolAnswer{}, errors.New("the judge is away")
	}
	tr.goesOn(t, `tool write {"path":"a"}`)
	if got := strings.Join(tr.said(), "|"); !strings.HasPrefix(got, "deny") {
		t.Errorf("the agent heard %q, want a denial", got)
	}
}

func noise(t *testing.T, tr *trial) {
	tr.succeed(t, "say before", "noise", "say after")
	if said := tr.said(); len(said) < 2 || said[0] != "before" || said[len(said)-1] != "after" {
		t.Errorf("messages %q", said)
	}
	tr.succeed(t, "say later")
}

func beats(t *testing.T, tr *trial) {
	done := tr.start(context.Background(), "say up", "hang")
	eventually(t, "it works", func() bool { return len(tr.said()) == 1 })
	count := func() int {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		return tr.beats
	}
	before := count()
	eventually(t, "it beats", func() bool { return count() >= before+4 })
	tr.h.Interrupt()
	wait(t, done)
	last := count()
	time.Sleep(300 * time.Millisecond) // longer than a beat's interval
	expect.Is(t, count(), last, "it beats on after the prompt's end")
}
