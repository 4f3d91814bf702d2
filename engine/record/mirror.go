package record

import (
	"maps"
	"sync"
)

// Mirror holds a kind's records in memory as the newest commit left them: its
// Follow is the kind's. What is read is a snapshot, copied by the next change.
// Records and maps are shared, and must not be modified.
type Mirror[T any] struct {
	// Keep says which records are held; nil holds all, as many as there may be.
	Keep func(*T) bool
	// Changed is told after what it is about can be read; nil tells nobody.
	Changed func()

	mu      sync.Mutex
	tenants map[string]*mirrored[T]
}

type mirrored[T any] struct {
	records map[string]*T
	lent    bool // somebody may be reading it
}

// Follow takes a record over; nil was removed.
func (m *Mirror[T]) Follow(tenant, id string, v *T) {
	m.mu.Lock()
	of := m.of(tenant)
	if of.lent {
		of.records, of.lent = maps.Clone(of.records), false
	}
	if of.records[id] = v; v == nil || m.Keep != nil && !m.Keep(v) {
		delete(of.records, id)
	}
	m.mu.Unlock()
	if m.Changed != nil {
		m.Changed()
	}
}

// of is called with mu held.
func (m *Mirror[T]) of(tenant string) *mirrored[T] {
	if m.tenants == nil {
		m.tenants = map[string]*mirrored[T]{}
	}
	if m.tenants[tenant] == nil {
		m.tenants[tenant] = &mirrored[T]{records: map[string]*T{}}
	}
	return m.tenants[tenant]
}

// Of are a tenant's records by id.
func (m *Mirror[T]) Of(tenant string) map[string]*T {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.of(tenant)
	of.lent = true
	return of.records
}

// Get is one record, nil when there is none.
func (m *Mirror[T]) Get(tenant, id string) *T {
	m.mu.Lock()
	defer m.mu.Unlock()
	if of := m.tenants[tenant]; of != nil {
		return of.records[id]
	}
	return nil
}

// All are the records of every tenant, by tenant and id.
func (m *Mirror[T]) All() map[string]map[string]*T {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]map[string]*T{}
	for tenant, of := range m.tenants {
		of.lent, all[tenant] = true, of.records
	}
	return all
}

// Elsewhere reports whether another tenant has a record of that id.
func (m *Mirror[T]) Elsewhere(tenant, id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, of := range m.tenants {
		if other != tenant && of.records[id] != nil {
			return true
		}
	}
	return false
}
