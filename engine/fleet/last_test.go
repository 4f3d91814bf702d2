package fleet_test

import (
	"context"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// last fails unless an agent's record says so of its last task.
func (w *world) last(name, tk string, want task.Status) {
	w.T.Helper()
	a := w.agent(name)
	expect.True(w.T, a.LastTaskID == tk && a.LastStatus == want, "%s: last task %s is %q, want %s %q", name, a.LastTaskID, a.LastStatus, tk, want)
}

func TestAnAgentSaysHowItsLastTaskEnded(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		switch p.Message {
		case "fail":
			return task.Outcome{Status: task.Failed, Error: &task.Error{Code: "no", Message: "can't"}}, nil
		case "hang":
			return hang(ctx, h, p)
		}
		return done(ctx, h, p)
	})
	w.create("bob")
	w.last("bob", "", "")
	for message, want := range map[string]task.Status{"go": task.Succeeded, "fail": task.Failed} {
		tk := w.assign("bob", message)
		w.result(tk.TaskID)
		w.last("bob", tk.TaskID, want) // with the result, not some time later
		w.awaitStatus("bob", fleet.Idle)
	}
	hung := w.assign("bob", "hang")
	w.awaitStatus("bob", fleet.Busy)
	w.last("bob", hung.TaskID, "")
	expect.Of(w.fleet.CancelTask(t.Context(), alice, "bob"))(t)
	w.result(hung.TaskID)
	w.last("bob", hung.TaskID, task.Cancelled)
	late, err := w.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{
		Kind: fleet.KindPrompt, Input: core.Raw(`{"agent":"bob","message":"hang"}`), Timeout: time.Second,
	})
	expect.No(t, err)
	w.result(late.TaskID)
	w.last("bob", late.TaskID, task.TimedOut)
	unstarted, err := w.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{
		Kind: fleet.KindPrompt, Input: core.Raw(`{"agent":"bob","message":"go"}`), After: []string{w.waiting().TaskID},
	})
	expect.No(t, err)
	expect.Of(w.swarm.Cancel(t.Context(), alice, unstarted.TaskID, ""))(t)
	w.last("bob", late.TaskID, task.TimedOut) // it never had the other one
	w.consistent()
	w.Close()
	w.Open()
	w.last("bob", late.TaskID, task.TimedOut)
}

// waiting makes a task that nobody runs.
func (w *world) waiting() task.Task {
	w.T.Helper()
	t, err := w.swarm.Dispatch(w.T.Context(), alice, swarm.Dispatch{
		Kind: fleet.KindPrompt, Input: core.Raw(`{"agent":"bob","message":"go"}`), Session: w.session(),
	})
	expect.No(w.T, err)
	return t
}

func TestTheLastTaskIsNotOverWhileItIsTriedAgain(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(func(context.Context, *handle, fleet.Prompt) (task.Outcome, error) {
		return task.Outcome{Status: task.Failed, Error: &task.Error{Code: "x", Message: "y", Retryable: true}}, nil
	})
	w.create("bob")
	tk := w.assign("bob", "x")
	w.Await("the first attempt is over", func() bool {
		now, err := w.tasks.Get(t.Context(), home, tk.TaskID)
		return err == nil && now.Attempt == 1
	})
	w.last("bob", tk.TaskID, "")
}

func TestAnEngineThatDiedInTheLastAttemptEndsTheLastTaskIfAPersonSaysSo(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(hang)
	w.create("bob")
	one := 1
	tk, err := w.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{
		Kind: fleet.KindPrompt, Input: core.Raw(`{"agent":"bob","message":"x"}`), MaxAttempts: &one,
	})
	expect.No(t, err)
	w.awaitStatus("bob", fleet.Busy)
	w.crash()
	w.Open()
	w.run()
	w.sendAgain(tk.TaskID, judge.Answer{Reason: "no"})
	w.Await("the record is repaired", func() bool { return w.agent("bob").LastStatus != "" })
	w.last("bob", tk.TaskID, task.Blocked)
	w.awaitStatus("bob", fleet.Idle) // nothing changes while it is counted
	w.consistent()
}
