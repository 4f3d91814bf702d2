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
