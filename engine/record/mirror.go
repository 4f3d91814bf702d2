package record

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Mirror holds a kind's records in memory as the newest commit left them: its
// Follow is the kind's. Reading takes no lock. Records and maps are shared, and
// must not be modified.
type Mirror[T any] struct {
	// Keep says which records are held; nil holds all, as many as the kind's
	// Limit allows.
	Keep func(*T) bool
	// Changed is told after what it is about can be read; nil tells nobody.
	Changed func()

	mu  sync.Mutex // held by Follow
	all atomic.Pointer[map[string]map[string]*T]
}

// Follow takes a record over; nil was removed.
func (m *Mirror[T]) Follow(tenant, id string, v *T) {
	m.mu.Lock()
	all := maps.Clone(m.All())
	of := maps.Clone(all[tenant])
	if of == nil {
		of = map[string]*T{}
	}
	if of[id] = v; v == nil || m.Keep != nil && !m.Keep(v) {
		delete(of, id)
	}
	if all == nil {
		all = map[string]map[string]*T{}
	}
	all[tenant] = of
	m.all.Store(&all)
	m.mu.Unlock()
	if m.Changed != nil {
		m.Changed()
	}
}

// All are the records of every tenant, by tenant and id.
func (m *Mirror[T]) All() map[string]map[string]*T {
	if all := m.all.Load(); all != nil {
		return *all
	}
	return nil
}

// Of are a tenant's records by id.
func (m *Mirror[T]) Of(tenant string) map[string]*T { return m.All()[tenant] }

// Elsewhere reports whether another tenant has a record of that id.
func (m *Mirror[T]) Elsewhere(tenant, id string) bool {
	for other, of := range m.All() {
		if other != tenant && of[id] != nil {
			return true
		}
	}
	return false
}
