package skill

import (
	"context"
	"sync"
	"time"
)

// Hold lets a function be paused: it stands still where it says that it can.
// The zero value is not usable; RunFunc makes one for each run.
type Hold struct {
	mu     sync.Mutex
	moved  chan struct{} // closed and replaced whenever one of these changes
	paused bool
	still  bool // the function stands at a pause point, or idles
	over   bool // it has returned
}

func newHold() *Hold { return &Hold{moved: make(chan struct{})} }

// Wait is a pause point: it returns at once, or when a pause is over. Its
// error is that of ctx.
func (h *Hold) Wait(ctx context.Context) error {
	if h.free() {
		return ctx.Err()
	}
	h.change(func() { h.still = true })
	defer h.change(func() { h.still = false })
	return h.until(ctx, func() bool { return !h.paused })
}

// Sleep waits for d, not counting the time in which it is paused.
func (h *Hold) Sleep(ctx context.Context, d time.Duration) error {
	for {
		if err := h.Wait(ctx); err != nil || d <= 0 {
			return err
		}
		moved, began := h.next(), time.Now()
		if !h.free() {
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
	h.change(func() { h.still = true })
	func() {
		defer h.change(func() { h.still = false })
		wait()
	}()
	return h.Wait(ctx)
}

// pause returns once the function stands still or has returned, or with the
// error of ctx: it is paused at its next pause point then.
func (h *Hold) pause(ctx context.Context) error {
	h.change(func() { h.paused = true })
	return h.until(ctx, func() bool { return h.still || h.over })
}

func (h *Hold) resume() { h.change(func() { h.paused = false }) }

func (h *Hold) free() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.paused
}

func (h *Hold) next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moved
}

func (h *Hold) change(fn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fn()
	close(h.moved)
	h.moved = make(chan struct{})
}

// until waits for a condition, which is looked at with mu held.
func (h *Hold) until(ctx context.Context, ok func() bool) error {
	for {
		h.mu.Lock()
		met, moved := ok(), h.moved
		h.mu.Unlock()
		if met {
			return ctx.Err()
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
