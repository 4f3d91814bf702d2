// Package health keeps what is wrong now: records that can't be read, passes of
// loops that fail, a store that takes no writes. A tenant with a trouble is
// degraded; what stands beside the trouble goes on.
//
// Troubles is the one book of an engine. A Guard holds what one tenant's pass
// of a loop does wrong away from the others. Nothing here is stored: who opens
// the engine again finds again what is still wrong.
package health

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Trouble is one thing that is wrong.
type Trouble struct {
	Tenant    string    `json:"tenant_id"`       // "" is the whole engine
	Component string    `json:"component"`       // one word: "swarm", "judge", "store"
	About     string    `json:"about,omitempty"` // the record, as "session s_…"; "" is the component
	Reason    string    `json:"reason"`          // at most 500 bytes, printable
	Since     time.Time `json:"since"`
	Last      time.Time `json:"last"`
	Count     int       `json:"count"` // how often it was met
}

// Elsewhere is what a trouble is about that is nothing wrong: another machine has what the
// component refers to.
const Elsewhere = "elsewhere"

// String is a trouble in one line, without its tenant.
func (t Trouble) String() string {
	if t.About == "" {
		return t.Component + ": " + t.Reason
	}
	return t.Component + ": " + t.About + ": " + t.Reason
}

// Bounds of the book.
const (
	maxOfTenant = 100 // troubles that are told apart; the rest of a component are one, Others
	maxReason   = 500 // bytes
	maxAbout    = 120 // bytes
)

// Others is what a trouble is about that stands for those past the bound.
const Others = "others"

// Options of New.
type Options struct {
	Clock   core.Clock
	Log     *slog.Logger        // nil logs nothing
	Changed func(tenant string) // hears after each trouble that came or went; must not block
}

// Troubles is what is wrong with an engine now. A nil one keeps nothing.
type Troubles struct {
	opt Options

	mu  sync.Mutex
	all map[string]map[place]*Trouble // by tenant
}

type place struct{ component, about string }

// New returns an empty book.
func New(opt Options) *Troubles {
	if opt.Clock == nil {
		opt.Clock = core.SystemClock{}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Troubles{opt: opt, all: map[string]map[place]*Trouble{}}
}

// Report notes what is wrong. When err names records (core.Damaged), each is a
// trouble of its own; else it is about what about says. The same one again
// counts up. It may be called anywhere, also on the store's goroutine; a nil err
// is none.
func (t *Troubles) Report(tenant, component, about string, err error) {
	records := core.DamagedIn(err)
	if err != nil && len(records) == 0 {
		t.note(tenant, place{component, core.OneLine(about, maxAbout)}, err)
	}
	for _, d := range records {
		t.note(tenant, place{component, core.OneLine(d.Noun+" "+d.Key, maxAbout)}, d.Err)
	}
}

func (t *Troubles) note(tenant string, at place, err error) {
	if t == nil {
		return
	}
	now := t.opt.Clock.Now()
	t.mu.Lock()
	of := t.all[tenant]
	if of == nil {
		of = map[place]*Trouble{}
		t.all[tenant] = of
	}
	known := of[at]
	if known == nil && len(of) >= maxOfTenant {
		at.about = Others
		known = of[at]
	}
	fresh := known == nil
	if fresh {
		known = &Trouble{Tenant: tenant, Component: at.component, About: at.about, Since: now}
		of[at] = known
	}
	known.Last, known.Count, known.Reason = now, known.Count+1, core.OneLine(err.Error(), maxReason)
	said := *known
	t.mu.Unlock()
	log := t.opt.Log.With("tenant", tenant, "component", said.Component)
	attrs := []any{"about", said.About, "reason", said.Reason, "count", said.Count}
	if p, ok := errors.AsType[*Panic](err); ok {
		attrs = append(attrs, "stack", string(p.Stack))
	}
	if p, ok := errors.AsType[*store.PanicError](err); ok {
		attrs = append(attrs, "stack", string(p.Stack))
	}
	if !fresh {
		log.Debug("still degraded", attrs...)
		return
	}
	log.Error("degraded", attrs...)
	t.changed(tenant)
}

// Clear takes a trouble away that is over.
func (t *Troubles) Clear(tenant, component, about string) {
	if t == nil {
		return
	}
	at := place{component, core.OneLine(about, maxAbout)}
	t.mu.Lock()
	gone := t.all[tenant][at]
	delete(t.all[tenant], at)
	t.mu.Unlock()
	if gone == nil {
		return
	}
	t.opt.Log.Info("recovered", "tenant", tenant, "component", component, "about", gone.About, "after", gone.Count)
	t.changed(tenant)
}

func (t *Troubles) changed(tenant string) {
	if t.opt.Changed != nil {
		t.opt.Changed(tenant)
	}
}

// Log is the log of the engine, for those who own a loop or a goroutine. It
// discards when there is none.
func (t *Troubles) Log() *slog.Logger {
	if t == nil {
		return slog.New(slog.DiscardHandler)
	}
	return t.opt.Log
}

// Of are the troubles of a tenant and those of the whole engine, which come
// first; then the oldest.
func (t *Troubles) Of(tenant string) []Trouble {
	if tenant == "" {
		return t.list("")
	}
	return t.list("", tenant)
}

// All are the troubles of every tenant, those of the whole engine first.
func (t *Troubles) All() []Trouble {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	tenants := slices.Sorted(maps.Keys(t.all))
	t.mu.Unlock()
	return t.list(tenants...)
}

func (t *Troubles) list(tenants ...string) (all []Trouble) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tenant := range tenants {
		for _, one := range t.all[tenant] {
			all = append(all, *one)
		}
	}
	core.Sort(all, func(a, b Trouble) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), a.Since.Compare(b.Since),
			cmp.Compare(a.Component, b.Component), cmp.Compare(a.About, b.About))
	})
	return all
}

// Panic is a panic as an error.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }
