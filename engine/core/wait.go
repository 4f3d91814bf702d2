package core

import "time"

// Within waits for something to be done, at most for a time, and says whether it is.
func Within(done <-chan struct{}, most time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(most):
		return false
	}
}
