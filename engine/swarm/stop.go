package swarm

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// stopping is a stopped session that still holds tasks.
type stopping struct {
	why   string
	taken bool // StopSession is at it
}

// StopSession ends a session for good: queued tasks are cancelled, running
// ones interrupted, open approvals voided. When it is cut short, by an error or
// a crash, the scheduler does the rest.
func (s *Swarm) StopSession(ctx context.Context, by core.Caller, id, reason string) (Session, error) {
	ses, err := s.moveSession(store.IfFull(ctx, store.UseReserve), by, id, "stop", SessionStopped, reason)
	if err != nil {
		return ses, err
	}
	err = s.empty(ctx, by, ses.SessionID, whyStopped(&ses))
	if err != nil {
		s.leaveToScheduler(&ses)
	}
	if errors.Is(err, store.ErrFull) { // the stop is recorded, what it cancels will be
		s.cutOff(by.Tenant, whyStopped(&ses), func(l *lease) bool { return l.session == ses.SessionID })
		return ses, nil
	}
	return ses, err
}

func whyStopped(ses *Session) string {
	if ses.Reason == "" {
		return "session stopped"
	}
	return "session stopped: " + ses.Reason
}

// markStopped notes, with the stop itself, that its tasks are to be cancelled.
func (s *Swarm) markStopped(tx *audit.Tx, ses *Session) error {
	if err := s.judge.Void(tx, func(a *judge.Approval) bool { return a.Session == ses.SessionID }, whyStopped(ses)); err != nil {
		return err
	}
	tenant, id, why := ses.TenantID, ses.SessionID, whyStopped(ses)
	tx.OnCommit(func() {
		s.mu.Lock()
		s.keep(tenant).stopping[id] = &stopping{why: why, taken: true}
		s.mu.Unlock()
	})
	return tx.Put(bStopping, record.Seq(task.Seq(id)), []byte(why))
}

func (s *Swarm) leaveToScheduler(ses *Session) {
	s.mu.Lock()
	if st := s.world(ses.TenantID).stopping[ses.SessionID]; st != nil {
		st.taken = false
	}
	s.mu.Unlock()
	s.ring()
}

// emptyStopped finishes the stops that were cut short.
func (s *Swarm) emptyStopped(ctx context.Context, tenant string) error {
	left := map[string]string{}
	s.mu.Lock()
	for id, st := range s.world(tenant).stopping {
		if !st.taken {
			left[id] = st.why
		}
	}
	s.mu.Unlock()
	for id, why := range left {
		if err := s.empty(ctx, core.Self(tenant, "sessions"), id, why); err != nil {
			return err
		}
	}
	return nil
}

// empty cancels what a stopped session holds. It takes no new tasks, and a
// running one that is being cancelled does not come back, so this ends.
func (s *Swarm) empty(ctx context.Context, by core.Caller, id, why string) error {
	for {
		live, err := s.liveOf(ctx, by.Tenant, id)
		if err != nil {
			return fmt.Errorf("list the tasks of stopped session %s: %w", id, err)
		}
		if len(live) == 0 {
			break
		}
		err = s.eachTask(ctx, by, live, func(tx *audit.Tx, seq uint64) error { return s.cancelAll(tx, []uint64{seq}, why) })
		if err != nil {
			return fmt.Errorf("cancel the tasks of stopped session %s: %w", id, err)
		}
	}
	err := s.ledger.Append(ctx, by, func(tx *audit.Tx) error {
		tx.OnCommit(func() {
			s.mu.Lock()
			delete(s.keep(by.Tenant).stopping, id)
			s.mu.Unlock()
		})
		return tx.Delete(bStopping, record.Seq(task.Seq(id)))
	})
	if err != nil {
		return fmt.Errorf("finish the stop of session %s: %w", id, err)
	}
	return nil
}

// liveOf lists the tasks of a session that are not over and not being
// cancelled yet, by their numbers.
func (s *Swarm) liveOf(ctx context.Context, tenant, session string) ([]uint64, error) {
	var out []uint64
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		all, err := s.tasks.Live(tx, "")
		if err != nil {
			return err
		}
		for _, seq := range all {
			if s.isShunned(tenant, seq) {
				continue
			}
			var t task.Task
			if err := s.tasks.Load(tx, seq, &t); err != nil {
				if err = s.unless(tenant, seq, err); errors.Is(err, errShunned) {
					continue
				}
				return err
			}
			if t.SessionID == session && !t.CancelRequested {
				out = append(out, seq)
			}
		}
		return nil
	})
	return out, err
}

func (s *Swarm) cancelAll(tx *audit.Tx, seqs []uint64, why string) error {
	for _, seq := range seqs {
		var t task.Task
		if err := s.tasks.Load(tx, seq, &t); err != nil {
			return err
		}
		if t.Status.Terminal() {
			continue
		}
		if err := s.cancel(tx, &t, core.Cut(why, 1000)); err != nil {
			return err
		}
	}
	return nil
}
