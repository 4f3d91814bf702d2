package store

import (
	"bytes"

	"go.etcd.io/bbolt"

	"swarmdeck/store/internal/group"
)

// walker steps through one table's records in a range.
type walker struct {
	t        *table
	c        *bbolt.Cursor
	from, to []byte
	reverse  bool
	started  bool
	key      []byte // nil at the end
	record   []byte
}

// Step moves to the next record of the range.
func (w *walker) Step() (err error) {
	defer guard(&err, "scan bucket", w.t.name)
	switch {
	case w.reverse && !w.started:
		w.last()
	case w.reverse:
		w.back(w.key)
	case !w.started && w.from == nil:
		w.key, w.record = w.c.First()
	case !w.started:
		w.key, w.record = w.c.Seek(w.from)
	default:
		w.key, w.record = w.c.Next()
	}
	w.started = true
	if w.key != nil && (w.reverse && w.from != nil && bytes.Compare(w.key, w.from) < 0 ||
		!w.reverse && w.to != nil && bytes.Compare(w.key, w.to) >= 0) {
		w.key, w.record = nil, nil
	}
	return nil
}

// Key is nil at the end.
func (w *walker) Key() []byte { return w.key }

// Value verifies the present record.
func (w *walker) Value() (value []byte, err error) {
	defer guard(&err, "scan bucket", w.t.name)
	return group.Unwrap(w.t.seed, w.t.name, w.key, w.record)
}

// last moves to the greatest key below the upper bound.
func (w *walker) last() {
	if w.to != nil {
		if k, _ := w.c.Seek(w.to); k != nil {
			w.back(k)
			return
		}
	}
	w.key, w.record = w.c.Last()
}

// back moves to the key before at. bbolt's Prev answers nil both at the
// beginning and on a page that this transaction has emptied; only after
// deletions is it worth finding out which.
func (w *walker) back(at []byte) {
	w.key, w.record = w.c.Prev()
	if w.key != nil || !w.t.deleted {
		return
	}
	if first, _ := w.t.b.Cursor().First(); first == nil || bytes.Compare(first, at) >= 0 {
		return
	}
	for w.key == nil {
		w.key, w.record = w.c.Prev()
	}
}

// scan visits the records of a table in [from, to), merged with the
// operations of an overlay (which may be nil).
func scan(t *table, o *group.Overlay[*table], from, to []byte, reverse bool, visit group.Visit) error {
	if t.b == nil {
		return group.Scan(nil, t, o, from, to, reverse, visit)
	}
	w := walker{t: t, from: from, to: to, reverse: reverse, c: t.cursor()}
	defer t.done(w.c)
	return group.Scan(&w, t, o, from, to, reverse, visit)
}
