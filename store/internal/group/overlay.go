package group

import (
	"bytes"
	"cmp"
	"sort"
)

// Overlay holds what one Update wants changed until it has succeeded. The
// usual update makes three to eight writes: a slice searched from its end is
// the cheapest index then; a large one gets a map per bucket.
type Overlay[T comparable] struct {
	Ops    []Op[T]
	Deltas []Delta
	Hooks  []func()
	Err    error // first refused call; fails the update even if fn ignores it

	tables []tableOps[T]
	scans  int   // scans under way; no writes meanwhile
	room   Arena // what the update asked for
}

// Op is the last word on one key.
type Op[T comparable] struct {
	Table  T
	Key    []byte
	Value  []byte
	Remove bool
}

// Delta is the change of one counter.
type Delta struct {
	Counter *Counter
	n       int64
}

// tableOps indexes the operations on one table.
type tableOps[T comparable] struct {
	t     T
	count int
	index map[string]int32 // key to op, once there are many
	order []int32          // ops by key, kept up once a scan asked for it
	kept  bool             // order is valid
}

// manyOps is the number of operations from which a table's are indexed.
const manyOps = 24

// Reset empties it for the next update.
func (o *Overlay[T]) Reset() {
	clear(o.Ops)
	clear(o.tables)
	clear(o.Deltas)
	clear(o.Hooks)
	const keep = 1024
	if cap(o.Ops) > keep {
		o.Ops = nil
	}
	o.Ops, o.tables, o.Deltas, o.Hooks = o.Ops[:0], o.tables[:0], o.Deltas[:0], o.Hooks[:0]
	o.Err, o.scans = nil, 0
	o.room.Reset()
}

// of returns the index of a table's operations, nil when there are none.
func (o *Overlay[T]) of(t T) *tableOps[T] {
	for i := range o.tables {
		if o.tables[i].t == t {
			return &o.tables[i]
		}
	}
	return nil
}

// find returns the operation on a key, nil when there is none.
func (o *Overlay[T]) find(t T, key []byte) *Op[T] {
	to := o.of(t)
	if to == nil {
		return nil
	}
	if to.index != nil {
		if i, ok := to.index[string(key)]; ok {
			return &o.Ops[i]
		}
		return nil
	}
	for i := len(o.Ops) - 1; i >= 0; i-- {
		if o.Ops[i].Table == t && bytes.Equal(o.Ops[i].Key, key) {
			return &o.Ops[i]
		}
	}
	return nil
}

// set records the new value of a key, or its removal.
func (o *Overlay[T]) set(t T, key, value []byte, remove bool) {
	if old := o.find(t, key); old != nil {
		old.Value, old.Remove = value, remove
		return
	}
	to := o.of(t)
	if to == nil {
		o.tables = append(o.tables, tableOps[T]{t: t})
		to = &o.tables[len(o.tables)-1]
	}
	at := int32(len(o.Ops))
	o.Ops = append(o.Ops, Op[T]{Table: t, Key: key, Value: value, Remove: remove})
	to.count++
	switch {
	case to.index != nil:
		to.index[string(key)] = at
	case to.count > manyOps:
		to.index = make(map[string]int32, 2*to.count)
		for i := range o.Ops {
			if o.Ops[i].Table == t {
				to.index[string(o.Ops[i].Key)] = int32(i)
			}
		}
	}
	if to.kept {
		i := o.search(to.order, key)
		to.order = append(to.order, 0)
		copy(to.order[i+1:], to.order[i:])
		to.order[i] = at
	}
}

// sorted returns the table's operations with keys in [from, to), by key.
func (o *Overlay[T]) sorted(t T, from, to []byte) []int32 {
	ops := o.of(t)
	if ops == nil {
		return nil
	}
	if !ops.kept {
		ops.order = ops.order[:0]
		for i := range o.Ops {
			if o.Ops[i].Table == t {
				ops.order = append(ops.order, int32(i))
			}
		}
		sort.Slice(ops.order, func(i, j int) bool {
			return bytes.Compare(o.Ops[ops.order[i]].Key, o.Ops[ops.order[j]].Key) < 0
		})
		ops.kept = true
	}
	low, high := 0, len(ops.order)
	if from != nil {
		low = o.search(ops.order, from)
	}
	if to != nil {
		high = o.search(ops.order, to)
	}
	if low >= high {
		return nil
	}
	return ops.order[low:high]
}

// search returns the place of the first of order not below key.
func (o *Overlay[T]) search(order []int32, key []byte) int {
	return sort.Search(len(order), func(i int) bool { return bytes.Compare(o.Ops[order[i]].Key, key) >= 0 })
}

// add changes a counter's delta and returns the counter's value with it.
func (o *Overlay[T]) add(c *Counter, n int64) int64 {
	if c.at < len(o.Deltas) && o.Deltas[c.at].Counter == c {
		d := &o.Deltas[c.at]
		d.n += n
		return c.value + d.n
	}
	if n != 0 {
		c.at = len(o.Deltas)
		o.Deltas = append(o.Deltas, Delta{c, n})
	}
	return c.value + n
}

// fail keeps the first refused call, and returns this one's error.
func (o *Overlay[T]) fail(err error) error {
	o.Err = cmp.Or(o.Err, err)
	return err
}

// Walker steps through one table's records in a range.
type Walker interface {
	// Step moves to the next record of the range, the first at first.
	Step() error
	// Key is the present record's, nil at the end.
	Key() []byte
	// Value verifies the present record.
	Value() ([]byte, error)
}

// Visit is what a scan does with a record: more asks for the next one. Its error ends
// the scan.
type Visit = func(key, value []byte) (more bool, err error)

// Scan visits the records of a table in [from, to), merged with the
// operations of an overlay. Both w and o may be nil.
func Scan[T comparable](w Walker, t T, o *Overlay[T], from, to []byte, reverse bool, visit Visit) error {
	if from != nil && to != nil && bytes.Compare(from, to) >= 0 {
		return nil
	}
	var at []byte // the walker's key
	step := func() error {
		err := w.Step()
		at = w.Key()
		return err
	}
	if w != nil {
		if err := step(); err != nil {
			return err
		}
	}
	var over []int32
	if o != nil {
		over = o.sorted(t, from, to)
	}
	for at != nil || len(over) > 0 {
		if len(over) > 0 {
			next := 0
			if reverse {
				next = len(over) - 1
			}
			op := &o.Ops[over[next]]
			order := -1
			if at != nil {
				order = bytes.Compare(op.Key, at)
				if reverse {
					order = -order
				}
			}
			if order <= 0 {
				if reverse {
					over = over[:next]
				} else {
					over = over[1:]
				}
				if order == 0 {
					if err := step(); err != nil {
						return err
					}
				}
				if !op.Remove {
					if more, err := visit(op.Key, op.Value); !more || err != nil {
						return err
					}
				}
				continue
			}
		}
		value, err := w.Value()
		if err != nil {
			return err
		}
		if more, err := visit(at, value); !more || err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
