package store

import (
	"bytes"

	"go.etcd.io/bbolt"
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

// step moves to the next record of the range.
func (w *walker) step() (err error) {
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

func (w *walker) value() (value []byte, err error) {
	defer guard(&err, "scan bucket", w.t.name)
	return unwrap(w.t.seed, w.t.name, w.key, w.record)
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

// scan calls fn for the records of a table in [from, to), merged with the
// operations of an overlay (which may be nil).
func scan(t *table, o *overlay, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
	if from != nil && to != nil && bytes.Compare(from, to) >= 0 {
		return nil
	}
	w := walker{t: t, from: from, to: to, reverse: reverse}
	if t.b != nil {
		w.c = t.cursor()
		defer t.done(w.c)
		if err := w.step(); err != nil {
			return err
		}
	}
	var over []int32
	if o != nil {
		over = o.sorted(t, from, to)
	}
	for w.key != nil || len(over) > 0 {
		if len(over) > 0 {
			at := 0
			if reverse {
				at = len(over) - 1
			}
			op := &o.ops[over[at]]
			order := -1
			if w.key != nil {
				order = bytes.Compare(op.key, w.key)
				if reverse {
					order = -order
				}
			}
			if order <= 0 {
				if reverse {
					over = over[:at]
				} else {
					over = over[1:]
				}
				if order == 0 {
					if err := w.step(); err != nil {
						return err
					}
				}
				if !op.remove && !fn(op.key, op.value) {
					return nil
				}
				continue
			}
		}
		value, err := w.value()
		if err != nil {
			return err
		}
		if !fn(w.key, value) {
			return nil
		}
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}
