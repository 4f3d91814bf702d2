package swarm

import (
	"context"
	"errors"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// component is what troubles with tasks are told under.
const component = task.Component

// quarantine names a task that can't be acted on. Claims pass over it until its
// header is written again, or the engine is opened again.
func (s *damage) quarantine(tenant string, seq uint64, err error) {
	id := core.NewID(core.TaskPrefix, tenant, seq)
	s.tenantAdded(tenant)
	s.mu.Lock()
	s.quarantined[tenant][seq] = true
	s.mu.Unlock()
	for _, d := range core.DamagedIn(err) { // another record than the task's, an approval for example
		if d.Noun != "task" {
			s.opt.Health.Report(tenant, component, "", d)
		} else {
			err = d.Err
		}
	}
	s.opt.Health.Report(tenant, component, "task "+id, errors.New(err.Error()))
}

func (s *damage) isQuarantined(tenant string, seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quarantined[tenant][seq]
}

// quarantinedIn is isQuarantined for one tenant.
func (s *damage) quarantinedIn(tenant string) func(seq uint64) bool {
	return func(seq uint64) bool { return s.isQuarantined(tenant, seq) }
}

// mended lets a task be claimed again whose header was written.
func (s *damage) mended(t *task.Task) {
	s.mu.Lock()
	of := s.quarantined[t.TenantID]
	was := len(of) > 0 && of[t.Seq()]
	if was {
		delete(of, t.Seq())
	}
	s.mu.Unlock()
	if was {
		s.opt.Health.Clear(t.TenantID, component, "task "+t.TaskID)
	}
}

// errQuarantined is why a transaction is undone that met a task it can't act on:
// the next try passes over it.
var errQuarantined = errors.New("a task can't be acted on")

// unless quarantines the task that err is about and returns errQuarantined, unless no
// task is the cause of err.
func (s *damage) unless(tenant string, seq uint64, err error) error {
	if broken(err) {
		return err
	}
	s.quarantine(tenant, seq, err)
	return errQuarantined
}

// eachTask does something to tasks, in batches of one transaction each. Where a
// batch fails, its tasks are done one by one, and those that fail are quarantined.
func (s *damage) eachTask(ctx context.Context, by core.Caller, seqs []uint64, do func(tx *audit.Tx, seq uint64) error) error {
	for some := range slices.Chunk(seqs, changeBatch) {
		err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			for _, seq := range some {
				if err := do(tx, seq); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			continue
		}
		for _, seq := range some {
			err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error { return do(tx, seq) })
			if err == nil {
				continue
			}
			if err = s.unless(by.Tenant, seq, err); !errors.Is(err, errQuarantined) {
				return err
			}
		}
	}
	return nil
}

// Inspect reads the header of every task of a tenant that is not over, and
// names those that can't be. They are not scheduled.
func (s *damage) Inspect(ctx context.Context, tenant string) error {
	for from := []byte(nil); ; {
		var bad map[uint64]error
		err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
			bad, from, err = s.tasks.Inspect(tx, from)
			return err
		})
		for seq, err := range bad {
			if err = s.unless(tenant, seq, err); !errors.Is(err, errQuarantined) {
				return err
			}
		}
		if err != nil || from == nil {
			return err
		}
	}
}

// inspect looks at every tenant, beside the scheduler.
func (s *damage) inspect(ctx context.Context) {
	// What ends it for all ends the scheduler too, which tells of it.
	_ = s.opt.Health.Tenants(ctx, component, s.tenants(), func(tenant string) error {
		err := s.Inspect(ctx, tenant)
		if errors.Is(err, store.ErrNoTenant) {
			return nil
		}
		return err
	})
}
