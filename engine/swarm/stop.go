package swarm

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/session"
	"swarmdeck/engine/task"
)

var _ session.Work = (*Swarm)(nil)

// SessionChanged implements session.Work: running tasks look again, and what a
// stopped session queued is not claimed any more.
func (s *leasing) SessionChanged(tenant, id string, now session.State) {
	if now == session.Stopped {
		s.queue.Forget(tenant, id)
	}
	s.poke(tenant)
}

func (s *leasing) CutOffSession(tenant, id, why string) {
	s.cutOff(tenant, why, func(l *lease) bool { return l.session == id })
}

// CancelSession implements session.Work. A stopped session takes no new tasks,
// and a running one that is being cancelled does not come back, so this ends.
func (s *ending) CancelSession(ctx context.Context, by core.Caller, id, why string) error {
	for {
		live, err := s.liveOf(ctx, by.Tenant, id)
		if err != nil {
			return fmt.Errorf("list them: %w", err)
		}
		if len(live) == 0 {
			return nil
		}
		err = s.eachTask(ctx, by, live, func(tx *audit.Tx, seq uint64) error {
			var t task.Task
			if err := s.tasks.Load(tx, seq, &t); err != nil || t.Status.Terminal() {
				return err
			}
			return s.cancel(tx, &t, core.Cut(why, 1000))
		})
		if err != nil {
			return err
		}
	}
}

// liveOf lists the tasks of a session that are not over and not being
// cancelled yet, by their numbers.
func (s *damage) liveOf(ctx context.Context, tenant, session string) ([]uint64, error) {
	var out []uint64
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		all, err := s.tasks.Live(tx, "")
		if err != nil {
			return err
		}
		for _, seq := range all {
			if s.isQuarantined(tenant, seq) {
				continue
			}
			var t task.Task
			if err := s.tasks.Load(tx, seq, &t); err != nil {
				if err = s.unless(tenant, seq, err); errors.Is(err, errQuarantined) {
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

// Rest has no task of a tenant started until again is called. Those that run go on.
func (s *shared) Rest(tenant string) (again func()) {
	s.resting.Store(tenant, true)
	return func() {
		s.resting.Delete(tenant)
		s.ring()
	}
}

func (s *shared) rests(tenant string) bool {
	_, rests := s.resting.Load(tenant)
	return rests
}
