package audit_test

import (
	"context"
	"maps"
	"slices"
	"sync"

	"swarmdeck/store"
)

// memory is a store.Store for tests that must reach under the ledger: its
// maps can be changed behind the log's back, as one who edits the file would.
type memory struct {
	mu      sync.Mutex
	seal    func(store.Tx) error
	tenants map[string]*space
	fail    error // makes the next commit fail after its seal
}

type space struct {
	buckets  map[store.Bucket]map[string][]byte
	counters map[string]int64
}

func (s *space) clone() *space {
	c := &space{buckets: map[store.Bucket]map[string][]byte{}, counters: maps.Clone(s.counters)}
	for name, b := range s.buckets {
		c.buckets[name] = maps.Clone(b)
	}
	return c
}

func newMemory(tenants ...string) *memory {
	m := &memory{tenants: map[string]*space{}}
	for _, t := range tenants {
		m.tenants[t] = (&space{counters: map[string]int64{}}).clone()
	}
	return m
}

func (m *memory) Update(_ context.Context, tenant string, fn func(store.Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.tenants[tenant]
	if !ok {
		return store.ErrNoTenant
	}
	tx := &memoryTx{tenant: tenant, space: old.clone()}
	err := fn(tx)
	if err == nil && m.seal != nil {
		err = m.seal(tx)
	}
	if err == nil {
		err, m.fail = m.fail, nil
	}
	if err != nil {
		return err
	}
	m.tenants[tenant] = tx.space
	for _, f := range tx.after {
		f()
	}
	return nil
}

func (m *memory) View(_ context.Context, tenant string, fn func(store.Tx) error) error {
	m.mu.Lock()
	s, ok := m.tenants[tenant]
	m.mu.Unlock()
	if !ok {
		return store.ErrNoTenant
	}
	return fn(&memoryTx{tenant: tenant, space: s, readOnly: true})
}

func (m *memory) CreateTenant(context.Context, string) error { return nil }
func (m *memory) Tenants(context.Context) ([]string, error)  { return nil, nil }
func (m *memory) Close() error                               { return nil }
func (m *memory) put(tenant string, b store.Bucket, key, val []byte) {
	m.tenants[tenant].put(b, key, val)
}

func (s *space) put(b store.Bucket, key, val []byte) {
	if s.buckets[b] == nil {
		s.buckets[b] = map[string][]byte{}
	}
	s.buckets[b][string(key)] = val
}

type memoryTx struct {
	tenant   string
	space    *space
	readOnly bool
	after    []func()
}

func (t *memoryTx) Tenant() string { return t.tenant }

func (t *memoryTx) Get(b store.Bucket, key []byte) ([]byte, error) {
	return t.space.buckets[b][string(key)], nil
}

func (t *memoryTx) Put(b store.Bucket, key, value []byte) error {
	if t.readOnly {
		return store.ErrReadOnly
	}
	t.space.put(b, key, value)
	return nil
}

func (t *memoryTx) Delete(b store.Bucket, key []byte) error {
	if t.readOnly {
		return store.ErrReadOnly
	}
	delete(t.space.buckets[b], string(key))
	return nil
}

func (t *memoryTx) Scan(b store.Bucket, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
	keys := slices.Sorted(maps.Keys(t.space.buckets[b]))
	if reverse {
		slices.Reverse(keys)
	}
	for _, k := range keys {
		if from != nil && k < string(from) || to != nil && k >= string(to) {
			continue
		}
		if !fn([]byte(k), t.space.buckets[b][k]) {
			return nil
		}
	}
	return nil
}

func (t *memoryTx) Counter(name string) int64 { return t.space.counters[name] }

func (t *memoryTx) Add(name string, delta int64) int64 {
	t.space.counters[name] += delta
	return t.space.counters[name]
}

func (t *memoryTx) OnCommit(fn func()) { t.after = append(t.after, fn) }
