package pipe

import (
	"bytes"
	"io"
	"sync"
)

// Tail keeps the newest of what it is given, up to a number and a size in bytes.
type Tail[T any] struct {
	Most, Bytes int

	items []T
	sizes []int
	size  int
	gone  int
}

// Add takes one, of n bytes.
func (t *Tail[T]) Add(item T, n int) {
	t.items, t.sizes, t.size = append(t.items, item), append(t.sizes, n), t.size+n
	for len(t.items) > t.Most || t.size > t.Bytes {
		var none T
		t.size, t.items[0] = t.size-t.sizes[0], none
		t.items, t.sizes = t.items[1:], t.sizes[1:]
		t.gone++
	}
}

// Kept is what is kept, oldest first, until the next Add or Take.
func (t *Tail[T]) Kept() []T { return t.items }

// Take gives what was kept, oldest first, and how many were not.
func (t *Tail[T]) Take() (items []T, gone int) {
	items, gone = t.items, t.gone
	t.items, t.sizes, t.size, t.gone = nil, nil, 0, 0
	return items, gone
}

// Log is what a log passes on up to its bounds, and the last that comes after.
type Log[T any] struct {
	Lines, Bytes int
	Tail         Tail[T]

	lines, bytes int
	over         bool
}

// Passes counts one more of n bytes, and says whether it is to be passed on. Of what is
// not the last is kept; first says that nothing was before.
func (l *Log[T]) Passes(item T, n int) (passes, first bool) {
	if !l.over && l.lines < l.Lines && l.bytes+n <= l.Bytes {
		l.lines++
		l.bytes += n
		return true, false
	}
	first, l.over = !l.over, true
	l.Tail.Add(item, n)
	return false, first
}

// Kept keeps the beginning of what is written to it, or its end, up to Most
// bytes. It is safe for concurrent use.
type Kept struct {
	Most int
	End  bool // keep the end
	// Over is the error of a write past Most; nil drops what is too much, so that
	// a program that says a lot does not hang on it. It is not for an End.
	Over error
	// To is where it is kept; nil is in memory. It is not for an End.
	To io.Writer

	mu   sync.Mutex
	data []byte
	n    int // bytes kept
	cut  bool
}

func (k *Kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	room := k.Most - k.n
	k.cut = k.cut || len(p) > room
	k.n += min(room, len(p))
	if k.End {
		k.data = append(k.data, p[max(0, len(p)-k.Most):]...)
		if over := len(k.data) - k.Most; over > 0 {
			k.data = append(k.data[:0], k.data[over:]...)
		}
		return len(p), nil
	}
	keep := p[:min(room, len(p))]
	if k.To == nil {
		k.data = append(k.data, keep...)
	} else if n, err := k.To.Write(keep); err != nil {
		return n, err
	}
	if len(keep) < len(p) && k.Over != nil {
		return room, k.Over
	}
	return len(p), nil
}

// Bytes is what is kept now.
func (k *Kept) Bytes() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return bytes.Clone(k.data)
}

// Cut reports whether anything was not kept.
func (k *Kept) Cut() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cut
}

// Take is Bytes, and forgets them.
func (k *Kept) Take() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	data := k.data
	k.data, k.n = nil, 0
	return data
}
