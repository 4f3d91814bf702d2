package core

import (
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
