// Package cluster tells which engines work on the data, how they are and which tenants
// they have. A database has several, a data file one while it runs. It keeps nothing:
// engines come and go in the store, and are told from there.
package cluster

import (
	"context"
	"slices"
	"sync"
	"time"
)

// State is how an engine is, as far as the others see.
type State string

// The states, by when an engine last said that it is there: it does so each third of its
// lease.
const (
	Up       State = "up"
	Draining State = "draining" // it is stopped, and hands its tenants over
	Late     State = "late"     // not for two thirds of its lease: its processes stand still
	Gone     State = "gone"     // its lease is over: others take its tenants
)

// States are all of them.
func States() []string { return []string{string(Up), string(Draining), string(Late), string(Gone)} }

// Engine is one engine.
type Engine struct {
	Name    string    `json:"name"`
	Host    string    `json:"host"` // name of its machine
	Version string    `json:"version"`
	Address string    `json:"address,omitempty"` // HOST:PORT at which others reach it; "" lets nobody in
	State   State     `json:"state"`
	Here    bool      `json:"here"`       // it is the one that tells
	Since   time.Time `json:"started_at"` // on the database's clock
	Seen    time.Time `json:"seen_at"`    // the same
	// Silent is the time since then, in ms, on the database's clock.
	Silent int64 `json:"silent_ms"`
	// Count is how many tenants it has, Tenants those of them that who asks may know.
	Count   int      `json:"tenant_count"`
	Tenants []string `json:"tenants"`
}

// Cluster is all engines and what none of them has.
type Cluster struct {
	Engines []Engine  // those that are gone last, then by name
	Free    []string  // tenants that no engine has
	Shared  bool      // it is a database's; the one engine of a data file has no others beside it
	At      time.Time // when it was so, on the clock of the engine that tells
}

// Tenants are all that it names, by name.
func (c Cluster) Tenants() []string {
	all := slices.Clone(c.Free)
	for _, e := range c.Engines {
		all = append(all, e.Tenants...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Many says whether there is more than one tenant.
func (c Cluster) Many() bool {
	n := len(c.Free)
	for i := range c.Engines {
		n += len(c.Engines[i].Tenants)
	}
	return n > 1
}

// Silence is how long an engine has not said that it is there. For one that does so again
// and again that is as of when it was looked at.
func (c Cluster) Silence(e Engine, now time.Time) time.Duration {
	silent := time.Duration(e.Silent) * time.Millisecond
	if e.State == Late || e.State == Gone {
		silent += max(0, now.Sub(c.At))
	}
	return silent
}

// Of is what someone may know who may know one tenant.
func (c Cluster) Of(tenant string) Cluster {
	c.Engines = slices.Clone(c.Engines)
	for i := range c.Engines {
		e := &c.Engines[i]
		only := []string{}
		if slices.Contains(e.Tenants, tenant) {
			only = append(only, tenant)
		}
		e.Tenants = only
	}
	if slices.Contains(c.Free, tenant) {
		c.Free = []string{tenant}
	} else {
		c.Free = nil
	}
	return c
}

// Owner is the engine that has a tenant; false is that none has.
func (c Cluster) Owner(tenant string) (Engine, bool) {
	i := slices.IndexFunc(c.Engines, func(e Engine) bool { return slices.Contains(e.Tenants, tenant) })
	if i < 0 {
		return Engine{}, false
	}
	return c.Engines[i], true
}

// same says that nothing differs that is worth a look: what was silent for longer is
// the same as long as its state is.
func (c Cluster) same(o Cluster) bool {
	return c.Shared == o.Shared && slices.Equal(c.Free, o.Free) && slices.EqualFunc(c.Engines, o.Engines, func(a, b Engine) bool {
		return a.Name == b.Name && a.Host == b.Host && a.Version == b.Version && a.Address == b.Address && a.State == b.State &&
			a.Here == b.Here && a.Count == b.Count && slices.Equal(a.Tenants, b.Tenants)
	})
}

// Book tells of the engines. A nil one knows of none. It is safe for concurrent use.
type Book struct {
	ask   func(context.Context) (Cluster, error)
	alone *Engine // the only engine, which has all tenants

	mu    sync.Mutex
	known Cluster
}

// New makes a book over what looks at the store.
func New(ask func(context.Context) (Cluster, error)) *Book { return &Book{ask: ask} }

// Alone makes the book of the one engine of a data file.
func Alone(e Engine, tenants func(context.Context) ([]string, error)) *Book {
	b := &Book{alone: &e}
	b.ask = func(ctx context.Context) (Cluster, error) {
		all, err := tenants(ctx)
		if err != nil {
			return Cluster{}, err
		}
		return b.Known(all), nil
	}
	return b
}

// Look tells of the engines as they are now.
func (b *Book) Look(ctx context.Context) (Cluster, error) {
	if b == nil {
		return Cluster{}, nil
	}
	return b.ask(ctx)
}

// Known is what was noted last, at once; where one engine has all tenants, that one with
// them. It must not be modified.
func (b *Book) Known(tenants []string) Cluster {
	if b == nil {
		return Cluster{}
	}
	if b.alone != nil {
		e := *b.alone
		e.State, e.Here, e.Count, e.Tenants = Up, true, len(tenants), append([]string{}, tenants...)
		return Cluster{Engines: []Engine{e}}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known
}

// Note keeps what is known, and says whether it is another thing than before.
func (b *Book) Note(c Cluster) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed = !b.known.same(c)
	b.known = c
	return changed
}
