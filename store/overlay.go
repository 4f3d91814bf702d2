package store

import (
	"bytes"
	"sort"
)

// overlay holds what one Update wants changed until it has succeeded. The
// usual update makes three to eight writes: a slice searched from its end is
// the cheapest index then; a large one gets a map per bucket.
type overlay struct {
	ops    []op
	tables []tableOps
	deltas []delta
	hooks  []func()
	err    error // first refused call; fails the update even if fn ignores it
	scans  int   // scans under way; no writes meanwhile
	room   arena // what the update asked for
}

// op is the last word on one key.
type op struct {
	t      *table
	key    []byte
	value  []byte
	remove bool
}

// delta is the change of one counter.
type delta struct {
	c *counter
	n int64
}

// tableOps indexes the operations on one table.
type tableOps struct {
	t     *table
	count int
	index map[string]int32 // key to op, once there are many
	order []int32          // ops by key, kept up once a scan asked for it
	kept  bool             // order is valid
}

// manyOps is the number of operations from which a table's are indexed.
const manyOps = 24

func (o *overlay) reset() {
	clear(o.ops)
	clear(o.tables)
	clear(o.deltas)
	clear(o.hooks)
	const keep = 1024
	if cap(o.ops) > keep {
		o.ops = nil
	}
	o.ops, o.tables, o.deltas, o.hooks = o.ops[:0], o.tables[:0], o.deltas[:0], o.hooks[:0]
	o.err, o.scans = nil, 0
	o.room.reset()
}

// of returns the index of a table's operations, nil when there are none.
func (o *overlay) of(t *table) *tableOps {
	for i := range o.tables {
		if o.tables[i].t == t {
			return &o.tables[i]
		}
	}
	return nil
}

// find returns the operation on a key, nil when there is none.
func (o *overlay) find(t *table, key []byte) *op {
	to := o.of(t)
	if to == nil {
		return nil
	}
	if to.index != nil {
		if i, ok := to.index[string(key)]; ok {
			return &o.ops[i]
		}
		return nil
	}
	for i := len(o.ops) - 1; i >= 0; i-- {
		if o.ops[i].t == t && bytes.Equal(o.ops[i].key, key) {
			return &o.ops[i]
		}
	}
	return nil
}

// set records the new value of a key, or its removal.
func (o *overlay) set(t *table, key, value []byte, remove bool) {
	if old := o.find(t, key); old != nil {
		old.value, old.remove = value, remove
		return
	}
	to := o.of(t)
	if to == nil {
		o.tables = append(o.tables, tableOps{t: t})
		to = &o.tables[len(o.tables)-1]
	}
	at := int32(len(o.ops))
	o.ops = append(o.ops, op{t: t, key: key, value: value, remove: remove})
	to.count++
	switch {
	case to.index != nil:
		to.index[string(key)] = at
	case to.count > manyOps:
		to.index = make(map[string]int32, 2*to.count)
		for i := range o.ops {
			if o.ops[i].t == t {
				to.index[string(o.ops[i].key)] = int32(i)
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
func (o *overlay) sorted(t *table, from, to []byte) []int32 {
	ops := o.of(t)
	if ops == nil {
		return nil
	}
	if !ops.kept {
		ops.order = ops.order[:0]
		for i := range o.ops {
			if o.ops[i].t == t {
				ops.order = append(ops.order, int32(i))
			}
		}
		sort.Slice(ops.order, func(i, j int) bool {
			return bytes.Compare(o.ops[ops.order[i]].key, o.ops[ops.order[j]].key) < 0
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
func (o *overlay) search(order []int32, key []byte) int {
	return sort.Search(len(order), func(i int) bool { return bytes.Compare(o.ops[order[i]].key, key) >= 0 })
}

// add changes a counter's delta and returns the counter's value with it.
func (o *overlay) add(c *counter, n int64) int64 {
	for i := range o.deltas {
		if o.deltas[i].c == c {
			o.deltas[i].n += n
			return c.value + o.deltas[i].n
		}
	}
	if n != 0 {
		o.deltas = append(o.deltas, delta{c, n})
	}
	return c.value + n
}

// fail keeps the first refused call, and returns this one's error.
func (o *overlay) fail(err error) error {
	if o.err == nil {
		o.err = err
	}
	return err
}
