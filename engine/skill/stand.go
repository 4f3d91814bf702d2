package skill

import (
	"context"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/swarm"
)

// stand is where a run stands: whether it is to stand still, which work is
// under way, and its time limits, which stand still with it.
type stand struct {
	mu     sync.Mutex
	moved  chan struct{} // closed and replaced whenever something here changes
	held   bool          // it is to stand still
	busy   bool          // a runner has the say
	work   swarm.Work    // of that runner, once it has started
	frozen bool          // the work has acknowledged a pause
	asking bool          // a person is asked
	clocks map[*clock]struct{}
}

func newStand() *stand {
	return &stand{moved: make(chan struct{}), clocks: map[*clock]struct{}{}}
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

func (t *stand) change(fn func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fn()
	still := t.asking || t.held && (!t.busy || t.frozen)
	for c := range t.clocks {
		c.run(!still)
	}
	close(t.moved)
	t.moved = make(chan struct{})
}

// until waits for a condition, which is looked at with mu held.
func (t *stand) until(ctx context.Context, ok func() bool) error {
	for {
		t.mu.Lock()
		met, moved := ok(), t.moved
		t.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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
	for {
		if err := t.until(ctx, func() bool { return !t.held }); err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		entered := false
		t.change(func() {
			if entered = !t.held; entered {
				t.busy, t.work, t.frozen = true, nil, false
			}
		})
		if entered {
			return nil
		}
	}
}

func (t *stand) working(w swarm.Work) { t.change(func() { t.work = w }) }

func (t *stand) leave() {
	t.change(func() { t.busy, t.work, t.frozen = false, nil, false })
}

// standing is Questions' view of it.
func (t *stand) standing() (held bool, moved <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held, t.moved
}

// pause returns when the run stands still: its work at once if that can, else
// when it has ended. On an error the run is still to stand, before whatever
// comes next.
func (t *stand) pause(ctx context.Context) error {
	t.change(func() { t.held = true })
	var w swarm.Work
	if err := t.until(ctx, func() bool { w = t.work; return !t.busy || w != nil }); err != nil {
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
	if t.until(ctx, func() bool { return t.work != w }) != nil {
		return fmt.Errorf("pause: the step can't stand still, and has not ended: %w", err)
	}
	return nil
}

func (t *stand) resume(ctx context.Context) error {
	t.mu.Lock()
	w := t.work
	frozen := t.frozen
	t.mu.Unlock()
	if frozen {
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
			err = &Failure{Code: "panic", Message: "the runner panicked: " + reason(p)}
		}
	}()
	return fn()
}
