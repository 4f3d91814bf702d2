package engine

import (
	"sync"
	"time"
)

// grace is how long a line that writes is waited for: of one that is cut off its caller
// can't tell whether it happened. One that goes on for longer is cut off.
const grace = 2 * time.Second

// lines are those that write.
type lines struct {
	mu    sync.Mutex
	began map[*time.Time]struct{}
}

// Enter tells of a line that writes, until done is called.
func (e *Engine) Enter() (done func()) {
	l, now := &e.lines, time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began == nil {
		l.began = map[*time.Time]struct{}{}
	}
	l.began[&now] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.began, &now)
	}
}

// drain waits for the lines that began within grace.
func (l *lines) drain() {
	brisk := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for began := range l.began {
			if time.Since(*began) < grace {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(grace); brisk() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}
