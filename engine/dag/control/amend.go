package control

import (
	"context"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
)

// amend changes an intent for somebody.
func (c *Controller) amend(ctx context.Context, by core.Caller, id, what string, fn func(*file) error) (Intent, error) {
	id, err := c.local(ctx, by, id)
	if err != nil {
		return Intent{}, err
	}
	var out Intent
	err = c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		f, err := c.open(tx, id)
		if err != nil {
			return err
		}
		if by.Kind == core.Agent && by.Name != f.AgentID {
			return core.Errorf(core.Denied, "intent %s is of agent %s: %s can't %s it", id, f.AgentID, by.Name, what)
		}
		if err := fn(f); err != nil {
			return err
		}
		f.wake(f.IntentID)
		out = f.Intent
		return nil
	})
	return out, audit.Explain(what+" intent "+id, err)
}

// Withdraw says that an intent is not wanted any more: what it began is taken
// back. One that is stuck is left as it is, and over.
func (c *Controller) Withdraw(ctx context.Context, by core.Caller, id, reason string) (Intent, error) {
	return c.amend(ctx, by, id, "withdraw", func(f *file) error {
		why := "withdrawn by " + by.Name
		if reason != "" {
			why += ": " + reason
		}
		detail := map[string]any{"by": by.Name, "reason": core.ClipTo(reason, maxWhy)}
		switch {
		case f.Status.Over():
			return core.Errorf(core.Conflict, "intent %s is %s already", id, f.Status).With("status", string(f.Status))
		case f.Status == Undoing || f.Withdrawn && f.Status != Stuck:
			return core.Errorf(core.Conflict, "intent %s is being taken back already", id).With("status", string(f.Status))
		case f.Status == Stuck:
			return f.giveUp(why, detail)
		}
		f.Withdrawn, f.Why = true, core.ClipTo(why, maxWhy)
		affects := []dag.EventRef{}
		for _, s := range f.Steps {
			if s.End == "" {
				affects = append(affects, dag.EventRef{EventID: s.Call})
			}
		}
		f.emit(&dag.Interruption{Reason: dag.ReasonCanceled, Affects: affects})
		if f.tried() { // it is cut off, and what comes of that is taken back
			at := place{f.TenantID, f.IntentID}
			f.tx.OnCommit(func() { c.cutOff(errWithdrawn, func(other place) bool { return other == at }) })
			return f.save("withdrawn", detail)
		}
		f.Epoch = 0
		if f.Status == Waiting && f.Approval != "" {
			mine := func(a *judge.Approval) bool { return a.ApprovalID == f.Approval }
			if err := c.opt.Judge.Void(f.tx, mine, "the intent was withdrawn"); err != nil {
				return err
			}
		}
		f.cutShort()
		return f.takeBack("withdrawn", detail)
	})
}

// cutShort ends the call of a step that began, is not being worked on, and will
// not be tried again.
func (f *file) cutShort() {
	if f.step().Status == StepStarted {
		f.answer(dag.CallCanceled, &dag.Fault{Code: string(dag.ReasonCanceled), Message: f.Why})
	}
}

// tried reports whether a step is being tried just now.
func (f *file) tried() bool { return f.Epoch == f.tx.Epoch() }

// giveUp closes a stuck intent as it is.
func (f *file) giveUp(why string, detail any) error {
	for n := range f.Steps {
		if step := &f.Steps[n]; step.Status.touched() && step.Undo != "" {
			f.emit(&dag.ToolResult{CallID: undoID(f.IntentID, n+1, step.Undos), Status: dag.CallCanceled, Result: core.Raw("{}")})
			step.Status = StepNotUndone
		}
	}
	f.Why = core.ClipTo(f.Why+"; what was left was accepted: "+why, maxWhy)
	return f.end("given_up", detail)
}

// Retry has an intent tried again. One that waits for its next try has it at
// once, with all tries before it. One that is stuck is taken back again. Of one
// that failed or was withdrawn a new intent is made, which is judged anew.
func (c *Controller) Retry(ctx context.Context, by core.Caller, id string) (Intent, error) {
	return c.amend(ctx, by, id, "retry", func(f *file) error {
		detail := map[string]any{"by": by.Name}
		switch {
		case f.Status == Done:
			return core.Errorf(core.Conflict, "intent %s is done", id).With("status", string(f.Status))
		case f.Status.Over():
			return f.anew()
		case f.Status == Waiting:
			return core.Errorf(core.Conflict, "intent %s waits %s", id, f.Why).With("approval_id", f.Approval)
		case f.tried():
			return core.Errorf(core.Conflict, "intent %s is being worked on", id).With("status", string(f.Status))
		case f.Status == Stuck:
			f.Status = Undoing
			f.step().Status = StepFailed
			f.callBack(f.At)
		}
		f.Tries, f.NextAt = 0, time.Time{}
		return f.save("retry", detail)
	})
}

// anew makes an intent that wants the same, and takes its place in hand.
func (f *file) anew() error {
	spec := Spec{
		AgentID: f.AgentID, TaskID: f.TaskID, SessionID: f.SessionID, TraceID: f.TraceID, Subject: f.Subject,
		Cause: dag.EventRef{EventID: f.Cause},
	}
	for n, s := range f.Steps {
		call, err := f.c.dag.GetIn(f.tx, s.Call)
		if err != nil {
			return audit.Explain("read the call of "+callID(f.IntentID, n+1), err)
		}
		spec.Steps = append(spec.Steps, Step{s.Action, call.Event.Body.(*dag.ToolCall).Args})
	}
	if err := f.c.check(&spec); err != nil {
		return err
	}
	var err error
	f.Intent, err = f.c.intend(f.tx, spec, f.IntentID)
	return err
}

// Await waits until an intent is over, or stuck, and returns it.
func (c *Controller) Await(ctx context.Context, tenant, id string) (Intent, error) {
	for {
		settled := c.settled.Look(func() {})
		i, err := c.Get(ctx, core.Self(tenant, component), id)
		if err != nil || i.Status.Over() || i.Status == Stuck {
			return i, err
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return i, ctx.Err()
		}
	}
}

// waitsUntil is a time as a reason reads it.
func waitsUntil(at, now time.Time) string {
	if left := at.Sub(now); left > 0 {
		return "in " + left.Round(time.Millisecond).String()
	}
	return "now"
}
