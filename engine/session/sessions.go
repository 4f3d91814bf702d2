package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Options of New.
type Options struct {
	Ledger *audit.Ledger
	Judge  *judge.Judge
	Health *health.Troubles
	Work   Work
}

// Work is what runs in sessions.
type Work interface {
	// Unpaused lists the tasks of a session whose work should stand still and
	// has not acknowledged that.
	Unpaused(tenant, session string) []string
	// CancelSession cancels all tasks that a stopped session holds.
	CancelSession(ctx context.Context, by core.Caller, session, why string) error
	// CutOffSession ends the running work of a session whose end the disk has no
	// room to record.
	CutOffSession(tenant, session, why string)
	// SessionChanged is told of every change after its commit.
	SessionChanged(tenant, session string, now State)
}

// Sessions are the sessions of all tenants.
type Sessions struct {
	opt  Options
	kind record.Table[Session]

	mu      sync.Mutex
	tenants map[string]*live
}

// live is what is kept in memory of a tenant's sessions.
type live struct {
	sessions map[string]Session   // those that are not stopped, by id
	names    map[string]string    // their names → ids
	stopping map[string]*stopping // stopped ones that still hold tasks
}

// New makes them; Read brings in what a tenant's records say.
func New(opt Options) *Sessions {
	s := &Sessions{opt: opt, tenants: map[string]*live{}}
	s.kind = s.declared()
	opt.Ledger.Register(s.kind.Auditable())
	return s
}

// Read takes over what is on disk of a tenant. A session that can't be read
// counts as none that runs.
func (s *Sessions) Read(ctx context.Context, tenant string) error {
	return errors.Join(s.kind.Read(ctx, tenant), s.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return unfinished.Each(tx, nil, func(k record.Parts, why string) (bool, error) {
			s.change(tenant, func(l *live) { l.stopping[core.NewID(core.SessionPrefix, tenant, k.Seq())] = &stopping{why: why} })
			return true, nil
		})
	}))
}

// change changes what is in memory of a tenant.
func (s *Sessions) change(tenant string, fn func(*live)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.tenants[tenant]
	if l == nil {
		l = &live{sessions: map[string]Session{}, names: map[string]string{}, stopping: map[string]*stopping{}}
		s.tenants[tenant] = l
	}
	fn(l)
}

// follow takes a session over, as it is on disk.
func (s *Sessions) follow(tenant, id string, ses *Session) {
	s.change(tenant, func(l *live) {
		switch {
		case ses.State == Stopped:
			delete(l.sessions, id)
			if l.names[ses.Name] == id {
				delete(l.names, ses.Name)
			}
		default:
			l.sessions[id] = *ses
			if ses.Name != "" {
				l.names[ses.Name] = id
			}
		}
	})
	s.opt.Work.SessionChanged(tenant, id, ses.State)
}

// State is the state of a session, "" for one that is stopped or unknown. It
// reads nothing from the store.
func (s *Sessions) State(tenant, id string) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.tenants[tenant]; l != nil {
		return l.sessions[id].State
	}
	return ""
}

// In is a session as a transaction sees it.
func (s *Sessions) In(tx store.Tx, id string) (*Session, error) { return s.kind.Need(tx, id) }

// Named is the id of the live session that has a name.
func (s *Sessions) Named(tenant, name string) (id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.tenants[tenant]; l != nil {
		id, ok = l.names[name]
	}
	return id, ok
}

// ID resolves an id, or a live session's name.
func (s *Sessions) ID(ctx context.Context, by core.Caller, id string) (string, error) {
	if _, _, _, ok := core.ParseID(id); !ok {
		if real, ok := s.Named(by.Tenant, id); ok {
			id = real
		} else if namePattern().MatchString(id) {
			return id, core.Missing("session", id)
		}
	}
	_, err := s.opt.Ledger.LocalSeq(ctx, by, core.SessionPrefix, id)
	return id, err
}

// Get returns one session, by id or by the name of a live one.
func (s *Sessions) Get(ctx context.Context, tenant, id string) (Session, error) {
	id, err := s.ID(ctx, core.Self(tenant, "reader"), id)
	if err != nil {
		return Session{}, err
	}
	ses, err := record.Value(s.kind.Get(ctx, tenant, id))
	ses.Pausing = s.opt.Work.Unpaused(tenant, id)
	return ses, err
}

// List lists sessions, newest first; f.Status filters by state.
func (s *Sessions) List(ctx context.Context, tenant string, f core.Filter) (core.Page[Session], error) {
	page, err := record.Paged(s.kind.Find(ctx, tenant, record.Query[*Session]{Filter: f}))
	for i := range page.Items {
		page.Items[i].Pausing = s.opt.Work.Unpaused(tenant, page.Items[i].SessionID)
	}
	return page, err
}

// Live are the sessions that are not stopped, newest first. It reads nothing
// from the store.
func (s *Sessions) Live(tenant string) []*Session {
	var out []*Session
	s.change(tenant, func(l *live) {
		for _, ses := range l.sessions {
			out = append(out, &ses)
		}
	})
	slices.SortFunc(out, func(a, b *Session) int { return cmp.Compare(b.SessionID, a.SessionID) })
	for _, ses := range out {
		ses.Pausing = s.opt.Work.Unpaused(tenant, ses.SessionID)
	}
	return out
}
