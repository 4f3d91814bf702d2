package session

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Create adds a session in state created. name is a label, "" for none.
func (s *Sessions) Create(ctx context.Context, by core.Caller, name string) (Session, error) {
	if err := CheckName(name); err != nil {
		return Session{}, err
	}
	var made Session
	err := s.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if err := freeName(tx, name); err != nil {
			return err
		}
		made = Session{SessionID: core.NewID(core.SessionPrefix, by.Tenant, s.kind.Next(tx)), Name: name, State: Created}
		return s.put(tx, nil, &made)
	})
	return made, err
}

// Start lets a created session's tasks run.
func (s *Sessions) Start(ctx context.Context, by core.Caller, id string) (Session, error) {
	return s.move(ctx, by, id, "start", Running, "")
}

// Resume continues a paused session.
func (s *Sessions) Resume(ctx context.Context, by core.Caller, id string) (Session, error) {
	return s.move(ctx, by, id, "resume", Running, "")
}

// Pause stops claiming the session's tasks and stops its running work. It
// returns at once; Pausing lists what has not acknowledged.
func (s *Sessions) Pause(ctx context.Context, by core.Caller, id, reason string) (Session, error) {
	return s.move(store.IfFull(ctx, store.UseReserve), by, id, "pause", Paused, reason)
}

func (s *Sessions) move(ctx context.Context, by core.Caller, id, verb string, to State, reason string) (Session, error) {
	id, err := s.ID(ctx, by, id)
	if err != nil {
		return Session{}, err
	}
	var ses Session
	err = s.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.kind.Need(tx, id)
		if err != nil {
			return err
		}
		if !follows(verb, old.State, to) {
			return core.Errorf(core.Conflict, "session %s is %s: can't %s it", id, old.State, verb).With("field", "state").With("value", string(old.State))
		}
		ses = *old
		ses.State, ses.Reason = to, core.Cut(reason, 1000)
		if to == Stopped {
			if err := s.markStopped(tx, &ses); err != nil {
				return err
			}
		}
		return s.put(tx, old, &ses)
	})
	if err != nil {
		return Session{}, err
	}
	ses.Pausing = s.opt.Work.Unpaused(by.Tenant, ses.SessionID)
	return ses, nil
}

// stopping is a stopped session that still holds tasks.
type stopping struct {
	why   string
	taken bool // Stop is at it
}

// Stop ends a session for good: queued tasks are cancelled, running ones
// interrupted, open approvals voided. When it is cut short, by an error or a
// crash, Finish does the rest.
func (s *Sessions) Stop(ctx context.Context, by core.Caller, id, reason string) (Session, error) {
	ses, err := s.move(store.IfFull(ctx, store.UseReserve), by, id, "stop", Stopped, reason)
	if err != nil {
		return ses, err
	}
	err = s.empty(ctx, by, ses.SessionID, ses.whyStopped())
	if err != nil {
		s.change(by.Tenant, func(l *live) {
			if st := l.stopping[ses.SessionID]; st != nil {
				st.taken = false
			}
		})
		s.opt.Work.SessionChanged(by.Tenant, ses.SessionID, Stopped)
	}
	if errors.Is(err, store.ErrFull) { // the stop is recorded, what it cancels will be
		s.opt.Work.CutOffSession(by.Tenant, ses.SessionID, ses.whyStopped())
		return ses, nil
	}
	return ses, err
}

// markStopped notes, with the stop itself, that its tasks are to be cancelled.
func (s *Sessions) markStopped(tx *audit.Tx, ses *Session) error {
	tenant, id, why := ses.TenantID, ses.SessionID, ses.whyStopped()
	if err := s.opt.Judge.Void(tx, func(a *judge.Approval) bool { return a.Session == id }, why); err != nil {
		return err
	}
	tx.OnCommit(func() {
		s.change(tenant, func(l *live) { l.stopping[id] = &stopping{why: why, taken: true} })
	})
	return unfinished.Put(tx, record.Numbered(core.SessionPrefix)(tenant, id), why)
}

// Finish does the rest of the stops of a tenant that were cut short.
func (s *Sessions) Finish(ctx context.Context, tenant string) error {
	left := map[string]string{}
	s.change(tenant, func(l *live) {
		for id, st := range l.stopping {
			if !st.taken {
				left[id] = st.why
			}
		}
	})
	for id, why := range left {
		if err := s.empty(ctx, core.Self(tenant, "sessions"), id, why); err != nil {
			return err
		}
	}
	return nil
}

// empty cancels what a stopped session holds, and forgets that it held any.
func (s *Sessions) empty(ctx context.Context, by core.Caller, id, why string) error {
	if err := s.opt.Work.CancelSession(ctx, by, id, why); err != nil {
		return fmt.Errorf("cancel the tasks of stopped session %s: %w", id, err)
	}
	err := s.opt.Ledger.Append(ctx, by, func(tx *audit.Tx) error {
		tx.OnCommit(func() {
			s.change(by.Tenant, func(l *live) { delete(l.stopping, id) })
		})
		return unfinished.Delete(tx, record.Numbered(core.SessionPrefix)(by.Tenant, id))
	})
	if err != nil {
		return fmt.Errorf("finish the stop of session %s: %w", id, err)
	}
	return nil
}
