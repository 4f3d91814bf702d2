package session

import (
	"cmp"
	"context"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Get returns one session, by id or by the name of a live one.
func (s *Sessions) Get(ctx context.Context, tenant, id string) (Session, error) {
	id, err := s.ID(ctx, core.Self(tenant, "reader"), id)
	if err != nil {
		return Session{}, err
	}
	ses, err := s.kind.Get(ctx, tenant, id)
	ses.Pausing = s.opt.Work.Unpaused(tenant, id)
	return ses, err
}

// List lists sessions, newest first; f.Status filters by state.
func (s *Sessions) List(ctx context.Context, tenant string, f core.Filter) (core.Page[Session], error) {
	if f.Status != "" && !slices.Contains(states, State(f.Status)) {
		return core.Page[Session]{}, core.Invalid("status", f.Status, "created, running, paused or stopped")
	}
	f, err := f.Check()
	if err != nil {
		return core.Page[Session]{}, err
	}
	var found []Session
	err = s.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return s.kind.Each(tx, func(ses *Session) error {
			if ses.matches(f) {
				found = append(found, *ses)
			}
			return nil
		})
	})
	if len(core.DamagedIn(err)) > 0 {
		s.opt.Health.Report(tenant, component, "", err)
		err = nil
	}
	slices.Reverse(found)
	items := found[min(f.Offset(), len(found)):]
	items = items[:min(f.Size, len(items))]
	for i := range items {
		items[i].Pausing = s.opt.Work.Unpaused(tenant, items[i].SessionID)
	}
	return core.NewPage(items, f, len(found)), err
}

// component is what troubles with sessions are told under: the tasks', which
// they hold up.
const component = "tasks"

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
