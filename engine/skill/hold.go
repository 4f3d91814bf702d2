package skill

import (
	"context"
	"time"

	"swarmdeck/engine/core"
)

// Hold lets a function be paused: it stands still where it says that it can.
// RunFunc makes one for each run.
type Hold struct {
	state  core.Condition // of what follows
	paused bool
	still  bool // the function stands at a pause point, or idles
	over   bool // it has returned
}

// Wait is a pause point: it returns at once, or when a pause is over. Its
// error is that of ctx.
func (h *Hold) Wait(ctx context.Context) error {
	if h.free() {
		return ctx.Err()
	}
	h.state.Change(func() { h.still = true })
	defer h.state.Change(func() { h.still = false })
	_ = h.state.Until(ctx, func() bool { return !h.paused }) // or until ctx ends
	return ctx.Err()
}

// Sleep waits for d, not counting the time in which it is paused.
func (h *Hold) Sleep(ctx context.Context, d time.Duration) error {
	for {
		if err := h.Wait(ctx); err != nil || d <= 0 {
			return err
		}
		free, began := false, time.Now()
		moved := h.state.Look(func() { free = !h.paused })
		if !free {
			continue
		}
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
			d = 0
		case <-moved:
			d -= time.Since(began)
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Idle calls wait, which does nothing but wait for something outside, so that
// a pause is in effect during it already. It returns after a pause is over.
func (h *Hold) Idle(ctx context.Context, wait func()) error {
	h.state.Change(func() { h.still = true })
	func() {
		defer h.state.Change(func() { h.still = false })
		wait()
	}()
	return h.Wait(ctx)
}

// pause returns once the function stands still or has returned, or with the
// error of ctx: it is paused at its next pause point then.
func (h *Hold) pause(ctx context.Context) error {
	h.state.Change(func() { h.paused = true })
	_ = h.state.Until(ctx, func() bool { return h.still || h.over }) // or until ctx ends
	return ctx.Err()
}

func (h *Hold) resume() { h.state.Change(func() { h.paused = false }) }

func (h *Hold) free() (free bool) {
	h.state.Look(func() { free = !h.paused })
	return free
}
