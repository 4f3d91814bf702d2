package control

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// absentFor is the pause before an action is looked for again that nothing
// here carries out: another program may.
const absentFor = time.Minute

// settle writes what came of a try, and says what is next.
func (c *Controller) settle(ctx context.Context, done todo, out outcome) (todo, error) {
	ctx, going := context.WithoutCancel(ctx), ctx.Err() == nil
	next, err := c.conclude(ctx, done, out, going)
	if err != nil && core.AsError(err).Code != core.Internal && (out.seen.Met || len(out.seen.Events) > 0) {
		// What was seen does not fit into the record: that is the effect's mistake,
		// and it would be made again.
		cause := core.Errorf(core.Conflict, "what was seen can't be recorded: %s", err)
		next, err = c.conclude(ctx, done, outcome{err: cause}, going)
	}
	return next, err
}

// conclude is settle in one transaction. What was cut off goes on in another pass.
func (c *Controller) conclude(ctx context.Context, done todo, out outcome, going bool) (next todo, err error) {
	i := done.try
	err = c.ledger.Update(ctx, core.Self(i.TenantID, component), func(tx *audit.Tx) error {
		f, err := c.open(tx, i.IntentID)
		if err != nil {
			return err
		}
		f.Epoch = 0
		if err := f.conclude(done.spent, out); err != nil {
			return err
		}
		if next = (todo{next: tx.Now()}); going {
			next, err = f.todo()
		}
		return err
	})
	return next, err
}

func (f *file) conclude(spent bool, out outcome) error {
	switch {
	case out.stopped:
		f.refundTry(spent)
		f.emit(&dag.Interruption{Reason: dag.ReasonShutdown, Affects: []dag.EventRef{f.call()}})
		f.Why = out.err.Error()
		return f.save("interrupted", map[string]any{"step": f.At})
	case f.Status == Undoing:
		return f.tookBack(out)
	case out.err == nil && out.seen.Met:
		return f.met(out)
	}
	return f.notMet(out)
}

// refundTry takes a try back that was none. A step that never acted is as if it
// had not begun, but nobody knows that: it stays started.
func (f *file) refundTry(spent bool) {
	if !spent {
		f.Tries--
	}
	if f.Status == Open && f.step().Status == StepStarted {
		f.step().Tries = f.Tries
	}
}

func (f *file) met(out outcome) error {
	if _, err := f.c.dag.EmitIn(f.tx, out.seen.Events...); err != nil {
		return err
	}
	step := f.step()
	step.Status, step.Error = StepDone, nil
	step.End = f.emit(&dag.ToolResult{CallID: callID(f.IntentID, f.At), Status: dag.CallOK, Result: object(out.seen.Result)}).EventID
	detail := map[string]any{"step": f.At, "tries": f.Tries}
	f.Why, f.Tries = "", 0
	switch {
	case f.At == len(f.Steps):
		return f.close(Done, "done", detail)
	case f.Withdrawn:
		f.At++
		return f.takeBack("step_done", detail)
	}
	f.At++
	return f.save("step_done", detail)
}

func (f *file) notMet(out outcome) error {
	step, fault := f.step(), out.fault(f.Tries)
	detail := map[string]any{"step": f.At, "tries": f.Tries, "why": fault.Message}
	switch {
	case f.Withdrawn:
		f.answer(dag.CallCanceled, fault)
		return f.takeBack("step_cut_off", detail)
	case out.err == nil || !final(out.err):
		if f.Tries < f.attempts() {
			f.Why = fault.Message
			f.NextAt = f.tx.Now().Add(f.c.opt.Backoff(f.Tries))
			return f.save("retried", detail)
		}
	}
	if _, err := f.c.dag.EmitIn(f.tx, out.seen.Events...); err != nil {
		return err
	}
	status := dag.CallError
	if out.late {
		status = dag.CallTimeout
	}
	f.answer(status, fault)
	f.Why = fmt.Sprintf("step %d (%s) failed: %s", f.At, step.Action, fault.Message)
	return f.takeBack("step_failed", detail)
}

// answer ends the call of the step at hand, which failed.
func (f *file) answer(status dag.CallStatus, fault *dag.Fault) {
	step := f.step()
	step.Error = fault
	if step.Status = StepFailed; status == dag.CallCanceled {
		step.Status = StepStarted
	}
	step.End = f.emit(&dag.ToolResult{CallID: callID(f.IntentID, f.At), Status: status, Result: core.Raw("{}"), Error: fault}).EventID
}

// takeBack begins to undo what was begun, the last step first.
func (f *file) takeBack(event string, detail any) error {
	for n := range f.Steps {
		if step := &f.Steps[n]; step.Status == StepPending {
			step.Status = StepCanceled
			step.End = f.emit(&dag.ToolResult{CallID: callID(f.IntentID, n+1), Status: dag.CallCanceled, Result: core.Raw("{}")}).EventID
		}
	}
	left := f.stepsLeft()
	if len(left) == 0 {
		return f.end(event, detail)
	}
	for _, n := range left {
		f.callBack(n)
	}
	f.Status, f.At, f.Tries, f.NextAt = Undoing, left[0], 0, time.Time{}
	return f.save(event, detail)
}

// callBack states that a step is to be taken back.
func (f *file) callBack(n int) {
	step := &f.Steps[n-1]
	step.Undos++
	step.Undo = f.emit(&dag.ToolCall{
		Server: server, Tool: undoTool, CallID: undoID(f.IntentID, n, step.Undos), RequestedBy: dag.EventRef{EventID: step.Call},
		Args: core.MustEncode(map[string]any{"call_id": callID(f.IntentID, n), "action": step.Action}),
	}).EventID
}

func undoID(intent string, step, round int) string {
	return fmt.Sprintf("%s/undo/%d", callID(intent, step), round)
}

// tookBack is conclude for a step that is being undone.
func (f *file) tookBack(out outcome) error {
	step := f.step()
	detail := map[string]any{"step": f.At, "tries": f.Tries}
	result := &dag.ToolResult{CallID: undoID(f.IntentID, f.At, step.Undos), Status: dag.CallOK, Result: object(out.seen.Result)}
	if out.err == nil && out.seen.Met {
		if _, err := f.c.dag.EmitIn(f.tx, out.seen.Events...); err != nil {
			return err
		}
		f.emit(result)
		step.Status, f.Tries = StepUndone, 0
		left := f.stepsLeft()
		if len(left) == 0 {
			return f.end("undone", detail)
		}
		f.At = left[0]
		return f.save("step_undone", detail)
	}
	fault := out.fault(f.Tries)
	detail["why"] = fault.Message
	if (out.err == nil || !final(out.err)) && f.Tries < f.attempts() {
		f.NextAt = f.tx.Now().Add(f.c.opt.Backoff(f.Tries))
		return f.save("undo_retried", detail)
	}
	result.Status, result.Result, result.Error = dag.CallError, core.Raw("{}"), fault
	f.emit(result)
	step.Status, step.Error = StepNotUndone, fault
	f.Status, f.Why = Stuck, join(f.Why, fmt.Sprintf("step %d (%s) can't be taken back: %s", f.At, step.Action, fault.Message))
	return f.save("stuck", detail)
}

// end closes an intent that did not come about.
func (f *file) end(event string, detail any) error {
	if f.Withdrawn {
		return f.close(Canceled, event, detail)
	}
	return f.close(Failed, event, detail)
}

// object is a result as the record takes it.
func object(result core.Raw) core.Raw {
	if len(result) == 0 {
		return core.Raw("{}")
	}
	return result
}
