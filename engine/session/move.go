package session

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
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
