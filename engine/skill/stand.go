package skill

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

// stand is where a run stands: whether it is to stand still, which work is
// under way, and its time limits, which stand still with it.
type stand struct {
	core.Condition

	held   bool       // it is to stand still
	busy   bool       // a runner has the say
	work   swarm.Work // of that runner, once it has started
	frozen bool       // the work has acknowledged a pause
	asking bool       // a person is asked
	clocks map[*clock]struct{}
}

func newStand() *stand {
	return &stand{clocks: map[*clock]struct{}{}}
}

// clock is a time limit.
type clock struct {
	left  time.Duration
	began time.Time   // since when it runs
	timer *time.Timer // nil while it stands
	fire  func()
}

func (c *clock) run(on bool) {
	switch {
	case on && c.timer == nil:
		c.began, c.timer = time.Now(), time.AfterFunc(c.left, c.fire)
	case !on && c.timer != nil:
		c.timer.Stop()
		c.left, c.timer = max(0, c.left-time.Since(c.began)), nil
	}
}

// change changes something here, and has the clocks run or stand by it.
func (t *stand) change(fn func()) {
	t.Change(func() {
		fn()
		still := t.asking || t.held && (!t.busy || t.frozen)
		for c := range t.clocks {
			c.run(!still)
		}
	})
}

// limit calls fire after d, not counting the time in which the run stands
// still. The returned function ends that.
func (t *stand) limit(d time.Duration, fire func()) (stop func()) {
	c := &clock{left: d, fire: fire}
	t.change(func() { t.clocks[c] = struct{}{} })
	return func() {
		t.change(func() {
			delete(t.clocks, c)
			c.run(false)
		})
	}
}

// enter waits until the run need not stand still, and then makes it busy.
func (t *stand) enter(ctx context.Context) error {
	return t.Until(ctx, func() bool {
		if t.held || ctx.Err() != nil {
			return false
		}
		t.busy, t.work, t.frozen = true, nil, false // which no clock minds: it is not to stand
		return true
	})
}

func (t *stand) working(w swarm.Work) { t.change(func() { t.work = w }) }

func (t *stand) leave() {
	t.change(func() { t.busy, t.work, t.frozen = false, nil, false })
}

// standing is Questions' view of it.
func (t *stand) standing() (held bool, moved <-chan struct{}) {
	moved = t.Look(func() { held = t.held })
	return held, moved
}

// pause returns when the run stands still: its work at once if that can, else
// when it has ended. On an error the run is still to stand, before whatever
// comes next.
func (t *stand) pause(ctx context.Context) error {
	t.change(func() { t.held = true })
	var w swarm.Work
	if err := t.Until(ctx, func() bool { w = t.work; return !t.busy || w != nil }); err != nil {
		return fmt.Errorf("pause: the step is just starting: %w", err)
	}
	if w == nil {
		return nil
	}
	err := guarded(func() error { return w.Pause(ctx) })
	if err == nil {
		t.change(func() { t.frozen = t.work == w })
		return nil
	}
	if t.Until(ctx, func() bool { return t.work != w }) != nil {
		return fmt.Errorf("pause: the step can't stand still, and has not ended: %w", err)
	}
	return nil
}

func (t *stand) resume(ctx context.Context) error {
	var w swarm.Work
	t.Look(func() { w = t.work })
	if w != nil { // one that has not acknowledged its pause may stand still too
		if err := guarded(func() error { return w.Resume(ctx) }); err != nil {
			return fmt.Errorf("resume: %w", err)
		}
	}
	t.change(func() {
		t.held = false
		if t.work == w {
			t.frozen = false
		}
	})
	return nil
}

// guarded turns a panic of a runner's work into an error.
func guarded(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked("the runner", p)
		}
	}()
	return fn()
}
