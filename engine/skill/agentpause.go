package skill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/core"
)

// Pause implements swarm.Work; it is in effect when the child stands still.
func (w *agentWork) Pause(ctx context.Context) error {
	return errors.Join(w.Work.Pause(ctx), w.hold(ctx, true))
}

// Resume implements swarm.Work.
func (w *agentWork) Resume(ctx context.Context) error {
	return errors.Join(w.hold(ctx, false), w.Work.Resume(ctx))
}

// hold pauses or resumes the child, at once if it runs, else when it does.
func (w *agentWork) hold(ctx context.Context, paused bool) error {
	w.mu.Lock()
	w.paused = paused
	running := w.running
	w.mu.Unlock()
	if !running {
		return nil
	}
	if err := w.setPaused(ctx, paused); err != nil || !paused {
		return err
	}
	for {
		why, err := w.queue.Why(ctx, w.call.Tenant, w.child)
		if err != nil {
			return fmt.Errorf("see whether task %s stands still: %w", w.child, err)
		}
		if !why.Moving {
			return nil
		}
		select {
		case <-time.After(pausePoll):
		case <-ctx.Done():
			return fmt.Errorf("pause task %s: not acknowledged: %w", w.child, ctx.Err())
		}
	}
}

// pausePoll is how often is looked whether a child stands still: the swarm
// tells of changes of tasks, and this is none.
const pausePoll = 10 * time.Millisecond

// setPaused asks the swarm; a child that is over or has it so already is fine.
func (w *agentWork) setPaused(ctx context.Context, paused bool) (err error) {
	verb := "pause"
	if paused {
		_, err = w.queue.PauseTask(ctx, w.by, w.child, "its skill is paused")
	} else {
		verb = "resume"
		_, err = w.queue.ResumeTask(ctx, w.by, w.child)
	}
	if err != nil && !errors.Is(err, core.Kind(core.Conflict)) {
		return fmt.Errorf("%s task %s: %w", verb, w.child, err)
	}
	return nil
}
