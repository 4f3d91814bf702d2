package core

import (
	"context"
	"errors"
	"sync"
	"time"
)

// IsOver reports whether something is done.
func IsOver(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Side does things side by side; all is closed once each is done.
func Side(things ...func()) (all <-chan struct{}) {
	var group sync.WaitGroup
	for _, do := range things {
		group.Go(do)
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	return done
}

// Each does something with all of a list side by side, and joins what failed.
func Each[T any](list []T, do func(T) error) error {
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, one := range list {
		all.Go(func() { errs[i] = do(one) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Within waits for something to be done, at most for a time, and says whether it is.
func Within(done <-chan struct{}, most time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(most):
		return false
	}
}

// Counts are how many there are now, in all and by whom. The zero value is ready.
type Counts[K comparable] struct {
	mu  sync.Mutex
	all int
	of  map[K]int
}

// Enter counts one more in, unless there are so many already, or so many of whom it is of.
func (c *Counts[K]) Enter(of K, most, mostOf int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= most || c.of[of] >= mostOf {
		return false
	}
	if c.of == nil {
		c.of = map[K]int{}
	}
	c.all++
	c.of[of]++
	return true
}

// Leave counts one out, and reports whether it was the last of whom it is of.
func (c *Counts[K]) Leave(of K) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.of[of]--; c.of[of] > 0 {
		return false
	}
	delete(c.of, of)
	return true
}

// Condition guards state that others wait for to change. Its zero value is
// ready. The functions that it is given run one at a time and must not call it.
type Condition struct {
	mu    sync.Mutex
	moved chan struct{} // closed at the next change; nil while nobody asked for it
}

// Change does something to the state and wakes whoever waits.
func (c *Condition) Change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
}

// Look reads the state. The channel is closed at the next change.
func (c *Condition) Look(at func()) (moved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at()
	if c.moved == nil {
		c.moved = make(chan struct{})
	}
	return c.moved
}

// Until waits until ok answers true; its error is the cause of ctx's end before
// that. As it answers true, ok may take what it waited for: that wakes nobody.
func (c *Condition) Until(ctx context.Context, ok func() bool) error {
	for {
		met := false
		moved := c.Look(func() { met = ok() })
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

// Outlast is for what must still be done when ctx ends: it lasts for d after
// that. While ctx lasts it has no deadline, for a slow or full disk is waited for.
func Outlast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(d, cancel)
		context.AfterFunc(last, func() { timer.Stop() })
	})
	return last, func() {
		stop()
		cancel()
	}
}

// Backoff is the pause after failed tries, of which the first is 0: it doubles from
// first up to last.
func Backoff(failed int, first, last time.Duration) time.Duration {
	return min(first<<min(max(failed, 0), 20), last)
}
