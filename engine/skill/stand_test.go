package skill

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/swarm"
	"swarmdeck/expect"
)

// silentWork stands still when it is to, but does not say so.
type silentWork struct {
	swarm.Work
	paused bool
}

func (w *silentWork) Pause(ctx context.Context) error {
	w.paused = true
	<-ctx.Done()
	return ctx.Err()
}

func (w *silentWork) Resume(context.Context) error {
	w.paused = false
	return nil
}

func TestAStepWhosePauseWasNotAcknowledgedGoesOnWithItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newStand(), &silentWork{}
		expect.No(t, s.enter(t.Context()))
		s.working(w)
		ctx, end := context.WithTimeout(t.Context(), 2*time.Second)
		defer end()
		expect.Must(t, s.pause(ctx) != nil, "a pause was acknowledged that is not")
		expect.No(t, s.resume(t.Context()))
		expect.True(t, !w.paused, "the run was resumed, its step was not")
	})
}
