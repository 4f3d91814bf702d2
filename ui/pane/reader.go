package pane

import (
	"cmp"
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Reader reads for a pane what the snapshot doesn't hold, one read at a time:
// while one is under way the next waits for it, so that a busy world never
// piles up reads.
type Reader[T any] struct {
	// Most is how long a read may take; 0 is 5 s.
	Most time.Duration

	pane string
	of   string
	busy bool // a read is under way
	more bool // the world changed meanwhile
}

// NewReader makes a reader for a pane. A pane has one of each type.
func NewReader[T any](pane string) Reader[T] { return Reader[T]{pane: pane} }

// Busy tells whether what of names is being read.
func (r *Reader[T]) Busy(of string) bool { return r.busy && r.of == of }

// Answer is what a read brought.
type Answer[T any] struct {
	of    string
	Got   T
	Err   error
	Again bool // the world changed since: read once more
}

// Read reads what of names; nothing when that is "".
func (r *Reader[T]) Read(of string, read func(ctx context.Context) (T, error)) tea.Cmd {
	switch {
	case of == "":
		return nil
	case r.Busy(of):
		r.more = true
		return nil
	}
	r.of, r.busy, r.more = of, true, false
	return AskFor(r.pane, cmp.Or(r.Most, readLimit), func(ctx context.Context) any {
		got, err := read(ctx)
		return Answer[T]{of: of, Got: got, Err: err}
	})
}

// Take unpacks a reply; ok is false for one that is not about of, or not this
// reader's.
func (r *Reader[T]) Take(of string, body any) (a Answer[T], ok bool) {
	if a, ok = body.(Answer[T]); !ok {
		return a, false
	}
	if a.of == r.of { // also when it is no longer wanted: the next read may go
		a.Again = r.more
		r.busy, r.more = false, false
	}
	return a, a.of == of
}
