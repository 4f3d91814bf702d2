package session

import (
	"cmp"
	"context"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

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
