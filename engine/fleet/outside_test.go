package fleet_test

import (
	"context"
	"errors"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// asksOutside has bob put a call before the judge on another way than his
// runtime, as a client of a protocol would.
func (w *world) asksOutside(ctx context.Context, tk task.Task, tool string) chan judge.Outcome {
	replies := make(chan judge.Outcome, 1)
	by := core.Caller{Tenant: home, Name: "bob", Kind: core.Agent, Door: core.DoorMCP}
	go func() {
		reply, err := w.fleet.Ask(ctx, judge.Request{
			By: by, Apart: true, Stop: make(chan struct{}),
			Ask: judge.Ask{
				Gate: judge.GateTool, TaskID: tk.TaskID, TraceID: tk.TraceID, Attempt: tk.Attempt, By: by, Agent: judge.AgentRef{Name: "bob"},
				Action: judge.Action{Kind: "tool", Server: "swarmdeck", Tool: tool, CallID: tool, Args: core.Raw("{}")}, Intent: "bob calls " + tool,
			},
			Record: func(*audit.Tx, judge.Step) error { return nil },
		})
		expect.True(w.T, err == nil || errors.Is(err, context.Canceled), "%v", err)
		replies <- reply
	}()
	return replies
}

// waiting is bob at work on a task whose end the test decides.
func waiting(t *testing.T) (w *world, tk task.Task, finish func()) {
	t.Helper()
	w = newWorld(t).run()
	over := make(chan struct{})
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		return beatUntil(ctx, h, p, over)
	})
	w.create("bob")
	tk = w.assign("bob", "x")
	w.Await("bob works", func() bool { return w.agent("bob").TaskID == tk.TaskID })
	return w, tk, func() { close(over) }
}

// question is the open approval for a tool.
func (w *world) question(tool string) (found judge.Approval) {
	w.T.Helper()
	w.Await("a question about "+tool, func() bool {
		open, err := w.judge.Open(w.T.Context(), home)
		for _, a := range open {
			if a.Action.Tool == tool {
				found = a
			}
		}
		return err == nil && found.ApprovalID != ""
	})
	return found
}

func TestAnAgentWaitsForWhatItAsksOnAnotherWay(t *testing.T) {
	w, tk, finish := waiting(t)
	one := w.asksOutside(t.Context(), tk, "one")
	first := w.question("one")
	two := w.asksOutside(t.Context(), tk, "two")
	second := w.question("two")
	w.Await("it waits", func() bool {
		a := w.agent("bob")
		return a.State() == "waiting for you" && a.Waiting == first.ApprovalID && len(a.Asked) == 1 && a.Asked[0] == second.ApprovalID
	})
	now, err := w.tasks.Get(t.Context(), home, tk.TaskID)
	expect.True(t, err == nil && now.Waiting != "" && now.ApprovalID == first.ApprovalID, "task: %+v, %v", now, err)
	// The one that is answered is no longer waited for, the other still is.
	expect.Of(w.judge.Answer(t.Context(), alice, first.ApprovalID, judge.Answer{Approve: true, Reason: "fine"}))(t)
	r := <-one
	expect.True(t, r.Approved, "%+v", r)
	w.Await("it waits for the other", func() bool {
		a := w.agent("bob")
		now, err := w.tasks.Get(t.Context(), home, tk.TaskID)
		return err == nil && a.Waiting == second.ApprovalID && len(a.Asked) == 0 && now.ApprovalID == second.ApprovalID
	})
	expect.Of(w.judge.Answer(t.Context(), alice, second.ApprovalID, judge.Answer{Reason: "no"}))(t)
	r = <-two
	expect.True(t, !r.Approved && r.Reason == "no", "%+v", r)
	w.Await("it goes on", func() bool { return w.agent("bob").State() == "working" })
	finish()
	if r := w.result(tk.TaskID); r.Status != task.Succeeded || len(r.Denials) != 1 {
		t.Errorf("result: %+v", r)
	}
	w.consistent()
}

func TestAnAgentWhoseQuestionIsWithdrawnGoesOn(t *testing.T) {
	w, tk, finish := waiting(t)
	ctx, giveUp := context.WithCancel(t.Context())
	replies := w.asksOutside(ctx, tk, "write")
	ap := w.question("write")
	w.Await("it waits", func() bool { return w.agent("bob").Waiting == ap.ApprovalID })
	giveUp()
	<-replies
	w.Await("it goes on", func() bool { return w.agent("bob").State() == "working" })
	now, err := w.tasks.Get(t.Context(), home, tk.TaskID)
	expect.True(t, err == nil && now.Waiting == "", "task: %+v, %v", now, err)
	a, _ := w.judge.Approval(t.Context(), home, ap.ApprovalID)
	expect.True(t, a.Status == judge.Voided, "approval: %+v", a)
	finish()
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded && len(r.Denials) == 0, "result: %+v", r)
	w.consistent()
}

func TestADenialThatAbortsEndsTheTaskWhereverItWasAsked(t *testing.T) {
	w, tk, _ := waiting(t)
	replies := w.asksOutside(t.Context(), tk, "write")
	expect.Of(w.judge.Answer(t.Context(), alice, w.question("write").ApprovalID, judge.Answer{Abort: true, Reason: "enough"}))(t)
	<-replies
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Blocked && r.Error != nil && r.Error.Code == "approval_denied" && len(r.Denials) == 1, "result: %+v", r)
	a := w.agent("bob")
	expect.True(t, a.Waiting == "" && a.Status == fleet.Idle, "agent: %+v", a)
	w.consistent()
}

func TestTheEndOfARunVoidsAllItsQuestions(t *testing.T) {
	w, task, finish := waiting(t)
	w.asksOutside(t.Context(), task, "one")
	first := w.question("one")
	w.asksOutside(t.Context(), task, "two")
	second := w.question("two")
	finish()
	w.result(task.TaskID)
	w.Await("the questions are void", func() bool {
		a, errA := w.judge.Approval(t.Context(), home, first.ApprovalID)
		b, errB := w.judge.Approval(t.Context(), home, second.ApprovalID)
		return errA == nil && errB == nil && a.Status == judge.Voided && b.Status == judge.Voided
	})
	w.Await("it is idle", func() bool {
		a := w.agent("bob")
		return a.Status == fleet.Idle && a.Waiting == "" && len(a.Asked) == 0
	})
	w.consistent()
}
