package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"swarmdeck/store"
)

// Counts are the values of a tenant's held counters at one time. They must not
// be modified.
type Counts map[string]int64

// Events is the number of the newest audit event.
func (c Counts) Events() uint64 { return uint64(c[counter]) }

// Counter is the value of one. Only one that is held can be asked for.
func (c Counts) Counter(name string) int64 {
	n, held := c[name]
	if !held {
		panic("counter " + name + " is not held; see Ledger.Hold")
	}
	return n
}

// held are a tenant's counters in memory.
type held struct {
	counts Counts
	lent   bool // somebody may be reading them
}

// heldNames are the held counters of each tenant, "" of every one.
type heldNames map[string]map[string]bool

func (n heldNames) has(tenant, name string) bool { return n[""][name] || n[tenant][name] }

// Hold keeps counters of a tenant, "" for every one, in memory, as the newest
// commit left them, for who looks at them often. It is called before the first
// change, or within a transaction of Update.
func (l *Ledger) Hold(tenant string, names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changeHeld(tenant, func(of map[string]bool) {
		for _, name := range names {
			of[name] = true
		}
	})
}

// Release is the end of a Hold.
func (l *Ledger) Release(tenant string, names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changeHeld(tenant, func(of map[string]bool) {
		for _, name := range names {
			delete(of, name)
		}
	})
	h := l.heldOf(tenant)
	h.own()
	for _, name := range names {
		delete(h.counts, name)
	}
}

// changeHeld is called with mu held.
func (l *Ledger) changeHeld(tenant string, change func(map[string]bool)) {
	all := heldNames{}
	if known := l.holds.Load(); known != nil {
		maps.Copy(all, *known)
	}
	of := map[string]bool{}
	maps.Copy(of, all[tenant])
	change(of)
	all[tenant] = of
	l.holds.Store(&all)
}

// Counts are the held counters of a tenant. The store is asked only for those
// that nobody asked for before.
func (l *Ledger) Counts(ctx context.Context, tenant string) (Counts, error) {
	if c := l.counts(tenant, nil); c != nil {
		return c, nil
	}
	found := Counts{}
	err := l.View(ctx, tenant, func(tx *Tx) error {
		names := *l.holds.Load()
		for _, of := range []map[string]bool{names[""], names[tenant]} {
			for name := range of {
				found[name] = tx.Counter(name)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the counters of %s: %w", tenant, err)
	}
	return l.counts(tenant, found), nil
}

// counts adds those that are not held yet, and returns all; nil when there are
// more to hold.
func (l *Ledger) counts(tenant string, found Counts) Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.heldOf(tenant)
	for name, n := range found {
		if _, newer := h.counts[name]; !newer && l.holds.Load().has(tenant, name) { // a commit may have come between
			h.set(name, n)
		}
	}
	if names := *l.holds.Load(); len(h.counts) < len(names[""])+len(names[tenant]) {
		return nil
	}
	h.lent = true
	return h.counts
}

// heldOf is called with mu held.
func (l *Ledger) heldOf(tenant string) *held {
	h := l.held[tenant]
	if h == nil {
		h = &held{counts: Counts{}}
		l.held[tenant] = h
	}
	return h
}

func (h *held) set(name string, n int64) {
	h.own()
	h.counts[name] = n
}

// own makes the counts nobody else's.
func (h *held) own() {
	if h.lent {
		h.counts, h.lent = maps.Clone(h.counts), false
	}
}

// figure is the value of a held counter that a transaction changed.
type figure struct {
	name string
	n    int64
}

// hold notes the value of a counter, if it is a held one.
func (tx *Tx) hold(name string, n int64) {
	if !tx.l.holds.Load().has(tx.stamp.tenant, name) {
		return
	}
	if i := slices.IndexFunc(tx.figures, func(f figure) bool { return f.name == name }); i >= 0 {
		tx.figures[i].n = n
		return
	}
	tx.figures = append(tx.figures, figure{name, n})
}

// keepFigures runs after the commit.
func (tx *Tx) keepFigures() {
	if len(tx.figures) == 0 {
		return
	}
	tx.l.mu.Lock()
	defer tx.l.mu.Unlock()
	h := tx.l.heldOf(tx.stamp.tenant)
	for _, f := range tx.figures {
		if tx.l.holds.Load().has(tx.stamp.tenant, f.name) { // nobody released it meanwhile
			h.set(f.name, f.n)
		}
	}
}

// derivedTx is the store's transaction, of which only counters are looked at.
type derivedTx struct {
	store.Tx
	tx *Tx
}

func (d *derivedTx) Add(name string, delta int64) int64 {
	n := d.Tx.Add(name, delta)
	d.tx.hold(name, n)
	return n
}
