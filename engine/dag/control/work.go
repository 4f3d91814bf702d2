package control

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// outcome is what came of a try.
type outcome struct {
	seen    Seen
	err     error
	late    bool // its time was over
	stopped bool // this program ends: the try does not count
}

// try looks, and acts when that is needed; or takes back.
func (c *Controller) try(ctx context.Context, do todo) (out outcome) {
	k := c.kinds[do.try.step().Action]
	defer func() {
		if out.err == nil || ctx.Err() == nil {
			return
		}
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errWithdrawn):
		case errors.Is(cause, errFrozen):
			out.stopped, out.err = true, errFrozen
		default:
			out.stopped, out.err = true, errors.New("the engine was stopped")
		}
	}()
	if err := ctx.Err(); err != nil {
		return outcome{err: err}
	}
	job, err := c.job(ctx, do.try)
	if err != nil {
		return outcome{err: err}
	}
	if do.try.Status == Undoing {
		if do.spent {
			return outcome{err: errSpent}
		}
		return c.timed(ctx, k.Timeout, job, "compensate", k.Compensate)
	}
	if out = c.timed(ctx, k.Timeout, job, "probe", k.Probe); out.err != nil || out.seen.Met {
		return out
	}
	if do.spent {
		out.err = errSpent
		return out
	}
	return c.timed(ctx, k.Timeout, job, "act", k.Act)
}

// errSpent is why a step is given up whose tries all ended with their holder.
var errSpent = errors.New("each try ended with the program that made it")

// timed calls an effect, whose panic is an error.
func (c *Controller) timed(ctx context.Context, limit time.Duration, j Job, what string, fn func(context.Context, Job) (Seen, error)) (out outcome) {
	ctx, end := context.WithTimeout(ctx, limit)
	defer end()
	defer func() {
		if p := recover(); p != nil {
			out = outcome{err: fmt.Errorf("%s %s: panic: %v\n%s", what, j.Action, p, debug.Stack())}
		}
	}()
	out.seen, out.err = fn(ctx, j)
	if out.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		out.late = true
		out.err = fmt.Errorf("%s %s: not done within %s: %w", what, j.Action, limit, out.err)
	}
	return out
}

// job is what the step at hand asks of its effect, read from the record.
func (c *Controller) job(ctx context.Context, i *Intent) (Job, error) {
	step := i.step()
	j := Job{
		Key: callID(i.IntentID, i.At), Tenant: i.TenantID, IntentID: i.IntentID, Step: i.At,
		AgentID: i.AgentID, By: i.By, ByKind: i.ByKind, Action: step.Action, Call: dag.EventRef{EventID: step.Call},
	}
	call, err := c.dag.Get(ctx, i.TenantID, step.Call)
	if err != nil {
		return j, fmt.Errorf("read the call of %s: %w", j.Key, err)
	}
	j.Args = call.Event.Body.(*dag.ToolCall).Args
	for n := range i.At - 1 {
		if end := i.Steps[n].End; end != "" {
			seen, err := c.dag.Get(ctx, i.TenantID, end)
			if err != nil {
				return j, fmt.Errorf("read what came of %s: %w", callID(i.IntentID, n+1), err)
			}
			j.Earlier = append(j.Earlier, seen.Event.Body.(*dag.ToolResult).Result)
		}
	}
	return j, nil
}

// fault is an error as the record has it.
func (o *outcome) fault(tries int) *dag.Fault {
	code, why := "not_met", o.seen.Why
	if o.err != nil {
		code, why = string(core.AsError(o.err).Code), o.err.Error()
	}
	if o.late {
		code = string(dag.CallTimeout)
	}
	if why == "" {
		why = "what was wanted is not there after it was done"
	}
	return &dag.Fault{Code: code, Message: core.ClipTo(why, maxWhy), Details: core.MustEncode(map[string]int{"tries": tries})}
}
