package group

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Tail is what was written to a tenant since a moment, row by row, while a copy of
// it is made. The writer adds to it; a nil one takes nothing.
type Tail struct {
	mu   sync.Mutex
	rows map[string]struct{} // bucket, a zero byte, key
	lost bool
	held chan struct{} // closed when updates go on; nil while they do
}

// maxTail is how many rows are remembered.
const maxTail = 2 << 20

// ErrBusy says that more was written than a copy could follow.
var ErrBusy = errors.New("more is written than the copy can follow; try again when there is less to do")

// HeldError keeps an update waiting that was not run.
type HeldError struct{ Until <-chan struct{} }

func (*HeldError) Error() string { return "the tenant's updates are held" }

// Add notes a row.
func (t *Tail) Add(bucket string, key []byte) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch name := bucket + "\x00" + string(key); {
	case t.lost:
	case len(t.rows) >= maxTail:
		t.rows, t.lost = nil, true
	case t.rows == nil:
		t.rows = map[string]struct{}{name: {}}
	default:
		t.rows[name] = struct{}{}
	}
}

// Take hands over what has come together, in order.
func (t *Tail) Take(each func(bucket, key string)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost {
		return ErrBusy
	}
	for _, name := range slices.Sorted(maps.Keys(t.rows)) {
		bucket, key, _ := strings.Cut(name, "\x00")
		each(bucket, key)
	}
	t.rows = nil
	return nil
}

// Len is how many rows have come together.
func (t *Tail) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.rows)
}

// Hold keeps updates waiting from now on. It is called on the writer's goroutine.
func (t *Tail) Hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held = make(chan struct{})
	}
}

// Release lets the updates go on that Hold keeps waiting.
func (t *Tail) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held != nil {
		close(t.held)
		t.held = nil
	}
}

// Held is the error for an update while they are held, else nil.
func (t *Tail) Held() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		return nil
	}
	return &HeldError{t.held}
}
