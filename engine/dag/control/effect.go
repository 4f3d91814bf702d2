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

// Effect is one kind of effect on the world. Its methods are given a context
// that ends with the time for them, and when the intent is withdrawn; they must
// return then. They are never called side by side for one
// step.
//
// An error of code InvalidInput, NotFound, Conflict or Denied is final; after
// any other, or when what was wanted is not met, the step is tried again.
type Effect interface {
	// Probe looks, without changing anything, whether the world is as the job
	// wants it. It comes before every Act.
	Probe(ctx context.Context, j Job) (Seen, error)
	// Act brings it about. It may be called again after it did all or half of
	// that: it finds its own work by the job's Key.
	Act(ctx context.Context, j Job) (Seen, error)
	// Compensate takes back what Act did: all, half or nothing. It may be called
	// again after it did.
	Compensate(ctx context.Context, j Job) (Seen, error)
}

// Job is what an Effect is asked for.
type Job struct {
	Key      string // INTENT/STEP: the same each time, and of no other step
	Tenant   string
	IntentID string
	Step     int // from 1
	AgentID  string
	By       string // who wants it
	ByKind   core.ActorKind
	Action   string
	Args     core.Raw
	Call     dag.EventRef // the step's tool_call
	Earlier  []core.Raw   // results of the steps before it
}

// Seen is an observation.
type Seen struct {
	Met    bool     // the world is as the job wants it
	Why    string   // what is missing, while it is not
	Result core.Raw // an object; nil is {}
	// Events are recorded in the same transaction that ends the step, well or for
	// good: they may also stand beside a final error. Events of a step that is
	// tried again are dropped. A step whose events the record refuses fails.
	Events []dag.Event
}

// Kind is what is known of an action word.
type Kind struct {
	Effect
	Destructive bool          // what an agent wants of it passes the judge first
	Timeout     time.Duration // for one Probe, Act or Compensate; 0 means 5 min
	Attempts    int           // how often a step is tried; 0 means 5
}

// Defaults of a Kind.
const (
	defaultTimeout  = 5 * time.Minute
	defaultAttempts = 5
)

var actionPattern = core.Pattern(`^[a-z][a-z0-9]*([._-][a-z0-9]+)*$`)

// maxAction bounds an action word, in bytes.
const maxAction = 64

func checkAction(action string) error {
	if len(action) > maxAction || !actionPattern().MatchString(action) {
		return core.Invalid("action", action, "words of a-z 0-9 joined by . _ -, such as resource.snapshot")
	}
	return nil
}

// final reports errors that trying again can't help.
func final(err error) bool {
	switch core.AsError(err).Code {
	case core.InvalidInput, core.NotFound, core.Conflict, core.Denied:
		return true
	}
	return false
}

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
