package core

import (
	"context"
	"time"
)

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
