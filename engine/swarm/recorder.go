package swarm

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
)

// Recorder is told what attempts of tasks do and come to.
type Recorder interface {
	// Starting comes before the effect. An error fails the attempt.
	Starting(ctx context.Context, t *task.Task, a judge.Action) error
	// Worked comes after the work, with the places that its runner names (see Placed)
	// and since when it may have changed them.
	Worked(ctx context.Context, t *task.Task, places []string, since time.Time)
	// Judged tells a decision on a result, in the transaction that makes it.
	Judged(tx *audit.Tx, t *task.Task, d judge.GateDecision) error
	// Concluded tells the end of an attempt, in the transaction that commits it and
	// before its task moves: a result, or with status queued why it is tried again.
	Concluded(tx *audit.Tx, t *task.Task, res task.Result) error
}

// Placed is a Runner that knows which files and directories a task's work is there to
// change: absolute paths.
type Placed interface {
	Places(input core.Raw) []string
}

// unheard is a Recorder that nobody listens to.
type unheard struct{}

func (unheard) Starting(context.Context, *task.Task, judge.Action) error { return nil }
func (unheard) Worked(context.Context, *task.Task, []string, time.Time)  {}
func (unheard) Judged(*audit.Tx, *task.Task, judge.GateDecision) error   { return nil }
func (unheard) Concluded(*audit.Tx, *task.Task, task.Result) error       { return nil }

func (s *shared) recordStart(ctx context.Context, r Runner, t *task.Task) error {
	_, action, err := r.Check(t.TenantID, t.Input)
	if err != nil {
		return nil // the runner says so as it starts
	}
	if err := s.opt.Record.Starting(ctx, t, action); err != nil {
		return fmt.Errorf("record the start: %w", err)
	}
	return nil
}

// recordWork has it told what work changed on disk, before what it came to is.
func (s *shared) recordWork(ctx context.Context, t *task.Task) {
	r, err := s.runner(t.Kind)
	if placed, ok := r.(Placed); err == nil && ok {
		if places := placed.Places(t.Input); len(places) > 0 {
			s.opt.Record.Worked(ctx, t, places, t.StartedAt)
		}
	}
}
