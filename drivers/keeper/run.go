package keeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
)

// Run is one process of an agent, up to its end with nothing left of it.
type Run struct {
	Proc   Screened
	Mask   *secret.Mask  // hides what it was given
	Over   chan struct{} // closed when nothing of it is left
	Exit   cell.Exit     // valid after Over
	Ending bool          // it was asked to end; guarded by the agent's lock

	once sync.Once
	err  error
}

// Base is the run itself, of what a runtime has around it.
func (r *Run) Base() *Run { return r }

// Leaving reports whether it ends, or has ended; the agent's lock is held.
func (r *Run) Leaving() bool { return r.Ending || r.Proc.Ended() }

// Stop ends the whole process tree, once; others wait for it.
func (r *Run) Stop(g cell.Grace) error {
	r.once.Do(func() { r.err = r.Proc.Stop(g) })
	return r.err
}

// Finish ends what a process that has ended has left running. What was written is read
// for a while before and after it; drained is closed when there is no more.
func (r *Run) Finish(drained <-chan struct{}, patience, grace time.Duration) {
	core.Within(drained, patience)
	_ = r.Stop(cell.Grace{Interrupt: -1, Terminate: grace})
	core.Within(drained, patience)
}

// UnlessOver forgives the conflict of pausing or resuming it while it ends, once it has
// ended: then nothing of it runs.
func (r *Run) UnlessOver(ctx context.Context, err error) error {
	if !errors.Is(err, core.Kind(core.Conflict)) {
		return err
	}
	select {
	case <-r.Over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the process to end: %w", ctx.Err())
	}
}

// stopped stops it, and waits until nothing of it is left.
func (r *Run) stopped(ctx context.Context, g cell.Grace) error {
	stopped := make(chan error, 1)
	go func() { stopped <- r.Stop(g) }()
	select {
	case err := <-stopped:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-r.Over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
