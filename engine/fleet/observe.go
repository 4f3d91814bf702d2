package fleet

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
)

// Observer keeps what agents do as a record of its own.
type Observer interface {
	// Began tells of a run before its agent hears of it. An error fails the run.
	Began(ctx context.Context, a Agent, t task.Task, message string) (Observed, error)
}

// Observed takes what happens in one run, in its order. What it can't keep is
// no reason to stop the agent: it says so at the end.
type Observed interface {
	// Event comes before the event has any effect.
	Event(ctx context.Context, e Event)
	// Judged tells a decision about a tool call of the run, in the transaction
	// that makes it: the policy's, and a person's when that is asked.
	Judged(tx *audit.Tx, a judge.Action, d judge.GateDecision) error
	// Answered tells the judge's word on a tool request before the agent hears
	// it.
	Answered(ctx context.Context, e Event, a ToolAnswer)
	Ended(ctx context.Context, out task.Outcome) error
}

// observe begins to tell of the run, if anybody listens.
func (r *run) observe(ctx context.Context) (err error) {
	if r.f.opt.Observer != nil {
		defer r.keep()()
		var seen Observed
		seen, err = r.f.opt.Observer.Began(ctx, *r.m.rec.Load(), r.job.Task, r.message())
		r.mu.Lock()
		r.seen = seen
		r.mu.Unlock()
	}
	return err
}

// observed tells the run's end, and logs what could not be kept.
func (r *run) observed(ctx context.Context, out task.Outcome) {
	if r.seen == nil {
		return
	}
	if err := r.seen.Ended(ctx, out); err != nil {
		r.log.add("WARN", "not all of this run could be recorded: "+err.Error(), "record")
		_ = r.log.flush(ctx) // as lost as what it tells of
	}
}

// judged tells a decision about a call of the agent's, if it is at work on the
// task and anybody listens.
func (m *member) judged(tx *audit.Tx, task string, a judge.Action, d judge.GateDecision) error {
	_, r := m.now()
	if r == nil || r.job.Task.TaskID != task {
		return nil
	}
	r.mu.Lock()
	seen := r.seen
	r.mu.Unlock()
	if seen == nil {
		return nil
	}
	return seen.Judged(tx, a, d)
}
