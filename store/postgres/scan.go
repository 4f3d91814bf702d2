package postgres

import (
	"context"
	"encoding/binary"
	"fmt"

	"swarmdeck/store"
	"swarmdeck/store/internal/group"
)

// bucket is a transaction's handle of one bucket.
type bucket struct {
	name store.Bucket
	seed uint32 // of its checksums
}

// buckets are the handles of one tenant. Few are in use at a time: a linear
// search beats a map.
type buckets struct {
	tenant string
	list   []*bucket
}

func (bs *buckets) Find(name store.Bucket) (*bucket, error) {
	if err := group.CheckBucket(name); err != nil { // also of one in the list: the counters are there too
		return nil, err
	}
	for _, b := range bs.list {
		if b.name == name {
			return b, nil
		}
	}
	return bs.add(name), nil
}

func (bs *buckets) add(name store.Bucket) *bucket {
	b := &bucket{name: name, seed: group.SeedOf(bs.tenant, name)}
	bs.list = append(bs.list, b)
	return b
}

// counters is the bucket of the tenant's counters, which no caller can name.
func (bs *buckets) counters() *bucket {
	for _, b := range bs.list {
		if b.name == group.Counters {
			return b
		}
	}
	return bs.add(group.Counters)
}

// value is the verified value of a key, nil when absent.
func (m *moment) value(ctx context.Context, b *bucket, key []byte) ([]byte, error) {
	if len(key) == 0 {
		return nil, nil
	}
	record, err := m.get(ctx, b.name, key)
	if err != nil || record == nil {
		return nil, err
	}
	return group.Unwrap(b.seed, b.name, key, record)
}

func (m *moment) count(ctx context.Context, counters *bucket, name string) (int64, error) {
	return group.ReadCounter(name, func(key []byte) ([]byte, error) { return m.value(ctx, counters, key) })
}

// scan visits the records in [from, to), merged with an overlay that may be
// nil.
func (m *moment) scan(ctx context.Context, b *bucket, o *group.Overlay[*bucket], from, to []byte, reverse bool, visit group.Visit) error {
	w := walker{ctx: ctx, m: m, b: b, from: from, to: to, reverse: reverse, more: true}
	if from == nil {
		w.from = []byte{}
	}
	return group.Scan(&w, b, o, from, to, reverse, visit)
}

// walker steps through one bucket's records in a range, a page at a time: fn
// runs without the moment's mutex.
type walker struct {
	ctx      context.Context
	m        *moment
	b        *bucket
	from, to []byte // of what is left
	reverse  bool
	more     bool
	begun    bool  // a page was read
	rows     []row // the present one is the first
}

func (w *walker) Step() (err error) {
	if len(w.rows) > 0 {
		w.rows = w.rows[1:]
	}
	for len(w.rows) == 0 && w.more {
		w.rows, w.from, w.to, w.more, err = w.m.page(w.ctx, w.b.name, w.from, w.to, w.reverse, !w.begun)
		if err != nil {
			return err
		}
		w.begun = true
	}
	return nil
}

func (w *walker) Key() []byte {
	if len(w.rows) == 0 {
		return nil
	}
	return w.rows[0].key
}

func (w *walker) Value() ([]byte, error) {
	return group.Unwrap(w.b.seed, w.b.name, w.rows[0].key, w.rows[0].record)
}

// viewTx is the transaction of a View, which also knows all that there is.
type viewTx struct {
	*group.ReadTx[store.Bucket, *bucket]
	view *view
}

var _ store.Inventory = (*viewTx)(nil)

const bucketsSQL = `select o.epoch = $2 and o.commit = $3, b.bucket
from owner o left join lateral (select distinct bucket from kv where tenant = $1) as b on true
where o.tenant = $1 order by b.bucket`

func (tx *viewTx) Buckets() (names []store.Bucket, err error) {
	if err := tx.Over(); err != nil {
		return nil, err
	}
	m := tx.view.at
	m.mu.Lock()
	defer m.mu.Unlock()
	rows, err := m.t.db.query(tx.view.ctx, m.frozen, bucketsSQL, []byte(m.t.name), m.epoch, m.commit)
	switch {
	case err != nil:
		return nil, fmt.Errorf("list the buckets: %w", err)
	case len(rows) == 0 || !truth(rows[0][0]):
		return nil, m.t.fenced()
	}
	for _, row := range rows {
		if len(row[1]) > 0 && row[1][0] != '_' { // those are the store's own
			names = append(names, store.Bucket(row[1]))
		}
	}
	return names, nil
}

func (tx *viewTx) Counters(visit func(name string, n int64)) error {
	if err := tx.Over(); err != nil {
		return err
	}
	return tx.view.Scan(tx.view.counters(), nil, nil, nil, false, func(name, value []byte) (bool, error) {
		if len(value) != 8 {
			return false, fmt.Errorf("counter %s: %w", name, store.ErrCorrupt)
		}
		visit(string(name), int64(binary.BigEndian.Uint64(value)))
		return true, nil
	})
}
