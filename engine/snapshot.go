package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/view"
)

// world hands out snapshots. Commits mark what changed; the next Snapshot takes
// just that again from what the services hold in memory, so the cost is paid per
// look and not per commit. The store is read for the first look at a new tenant
// alone.
type world struct {
	e *Engine

	mu      sync.Mutex
	bells   map[chan struct{}]struct{}
	closed  bool
	names   []string // of all tenants, sorted
	tenants map[string]*tenantWorld
}

type tenantWorld struct {
	mu   sync.Mutex // one reader builds at a time
	last atomic.Pointer[view.Snapshot]

	// Guarded by world.mu.
	rev    uint64
	logRev uint64
	stale  map[string]bool // kinds of record that changed since last
}

func (w *world) tenant(id string) *tenantWorld {
	t := w.tenants[id]
	if t == nil {
		t = &tenantWorld{stale: map[string]bool{"session": true, "agent": true, "approval": true, "budget": true, "task": true, "message": true, "subagent": true, "cad.agent": true}}
		w.tenants[id] = t
	}
	return t
}

// changed runs after each commit, on the store's writer.
func (w *world) changed(c core.Change) {
	if c.Kind == "agent" {
		w.e.Swarm.Wake()
	}
	w.e.Bus.Changed(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tenant(c.Tenant)
	t.rev++
	switch c.Kind {
	case "log":
		t.logRev++
	case "tenant":
		w.add(c.ID)
		w.e.Trends.Made(c.ID)
	default:
		t.stale[c.Kind] = true
	}
	w.ringAll()
}

// add takes tenants in, which every other sees; mu is held.
func (w *world) add(ids ...string) {
	w.names = slices.Concat(w.names, ids)
	slices.Sort(w.names)
	w.names = slices.Compact(w.names)
	for _, t := range w.tenants {
		t.rev++
	}
}

// ring tells of a change that no commit made.
func (w *world) ring(tenant string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tenant(tenant).rev++
	w.ringAll()
}

// Stirred tells who watches that an engine elsewhere has changed a tenant. What this one
// holds in memory stays as it was when it was opened; what is read anew is current.
func (e *Engine) Stirred(tenant string) { e.world.ring(tenant) }

// troubled tells of what came or went outside of the store; "" is of every tenant.
func (w *world) troubled(tenant string) {
	if tenant != "" {
		w.ring(tenant)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tenants {
		t.rev++
	}
	w.ringAll()
}

// ringAll rings every bell; the caller holds mu.
func (w *world) ringAll() {
	for bell := range w.bells {
		loop.Ring(bell)
	}
}

func (w *world) watch(ctx context.Context) <-chan struct{} {
	bell := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(bell)
		return bell
	}
	w.bells[bell] = struct{}{}
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, ok := w.bells[bell]; ok {
			delete(w.bells, bell)
			close(bell)
		}
	})
	return bell
}

func (w *world) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for bell := range w.bells {
		delete(w.bells, bell)
		close(bell)
	}
}

func (w *world) snapshot(tenant string) *view.Snapshot {
	w.mu.Lock()
	t := w.tenant(tenant)
	w.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	w.mu.Lock()
	last := t.last.Load()
	if last != nil && last.Revision == t.rev && last.Err == nil {
		w.mu.Unlock()
		return last
	}
	next := view.Snapshot{Tenant: tenant}
	if last != nil {
		next = *last
	}
	stale := t.stale
	t.stale = map[string]bool{}
	next.Revision, next.LogRev, next.Tenants = t.rev, t.logRev, w.names
	w.mu.Unlock()
	if next.Err = w.refresh(&next, stale); next.Err != nil {
		w.mu.Lock()
		for kind := range stale {
			t.stale[kind] = true // read it again at the next look
		}
		w.mu.Unlock()
	}
	t.last.Store(&next)
	return &next
}

// refresh takes what changed from where it is held.
func (w *world) refresh(s *view.Snapshot, stale map[string]bool) error {
	ctx := context.Background() // nothing is waited for but a first look
	e := w.e
	s.Cluster = e.Cluster.Known(s.Tenants)
	s.Visitors = e.Presence.Here(s.Tenant)
	s.Troubles = e.Health.Of(s.Tenant)
	s.EStop = e.Swarm.EStops.State(s.Tenant)
	if !slices.Contains(s.Tenants, s.Tenant) {
		return nil // there is nothing yet
	}
	held, err := e.Audit.Counts(ctx, s.Tenant)
	if err != nil {
		return err
	}
	s.AuditSeq = held.Events()
	if stale["task"] || stale["decision"] {
		if s.Counts, err = e.Tasks.Held(ctx, s.Tenant); err != nil {
			return err
		}
	}
	if stale["session"] || stale["work"] {
		s.Sessions = e.Swarm.Sessions.Live(s.Tenant)
	}
	if stale["subagent"] {
		s.Subagents = e.Skills.Live(s.Tenant)
	}
	if stale["cad.agent"] {
		s.CADAgents = e.CAD.Live(s.Tenant)
	}
	if stale["agent"] {
		s.Agents = e.Fleet.Live(s.Tenant)
	}
	if stale["budget"] || stale["usage"] || stale["task"] && len(s.Budgets) > 0 {
		if s.Budgets, err = e.Swarm.Budgets.List(ctx, s.Tenant); err != nil {
			return err
		}
	}
	if stale["message"] {
		if s.Bus, err = e.Bus.Figures(ctx, s.Tenant); err != nil {
			return err
		}
	}
	if stale["approval"] {
		s.Approvals = w.approvals(s.Tenant, s.Approvals)
	}
	return nil
}

// approvals lists a tenant's open approvals in order. last is the former list:
// most of it is as it was, in its order.
func (w *world) approvals(tenant string, last []*judge.Approval) []*judge.Approval {
	next := merged(w.e.Judge.Live(tenant), last)
	core.Sort(next, judge.MoreUrgent)
	return next
}

// merged has those that last had first, in its order.
func merged(open map[string]*judge.Approval, last []*judge.Approval) []*judge.Approval {
	next := make([]*judge.Approval, 0, len(open))
	for _, was := range last {
		if ask := open[was.ApprovalID]; ask != nil {
			next = append(next, ask)
		}
	}
	if len(next) == len(open) {
		return next
	}
	known := make(map[string]bool, len(next))
	for _, ask := range next {
		known[ask.ApprovalID] = true
	}
	for id, ask := range open {
		if !known[id] {
			next = append(next, ask)
		}
	}
	return next
}
