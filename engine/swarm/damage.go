package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// component is what troubles of this package are told under.
const component = "swarm"

// impossible says what about a stored header no commit can have written, "" if
// nothing. id is that of its key.
func (t *Task) impossible(tenant, id string) string {
	switch {
	case t.TaskID != id:
		return fmt.Sprintf("it says that it is %q", cut(t.TaskID, 64))
	case t.TenantID != tenant:
		return fmt.Sprintf("it says that it is of tenant %q", cut(t.TenantID, 64))
	case !t.Status.known():
		return fmt.Sprintf("status %q is none of %v", cut(string(t.Status), 64), Statuses())
	case t.Status == Running && t.Lease == 0 && t.Waiting == "":
		return "it is running without a lease"
	case t.Status.Terminal() == t.CompletedAt.IsZero():
		return fmt.Sprintf("it is %s, and completed_at is %q", t.Status, t.CompletedAt)
	}
	return ""
}

func damagedTask(tenant string, seq uint64, err error) error {
	return &core.Damaged{Noun: "task", Key: core.NewID(core.TaskPrefix, tenant, seq), Err: err}
}

// shun names a task that can't be acted on. Claims pass over it until its
// header is written again, or the engine is opened again.
func (s *Swarm) shun(tenant string, seq uint64, err error) {
	id := core.NewID(core.TaskPrefix, tenant, seq)
	s.mu.Lock()
	w := s.keep(tenant)
	if w.shunned == nil {
		w.shunned = map[uint64]bool{}
	}
	w.shunned[seq] = true
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

func (s *Swarm) isShunned(tenant string, seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.worlds[tenant]
	return w != nil && w.shunned[seq]
}

// mended lets a task be claimed again whose header was written.
func (s *Swarm) mended(tenant string, seq uint64) {
	s.mu.Lock()
	w := s.worlds[tenant]
	was := w != nil && w.shunned[seq]
	if was {
		delete(w.shunned, seq)
	}
	s.mu.Unlock()
	if was {
		s.opt.Health.Clear(tenant, component, "task "+core.NewID(core.TaskPrefix, tenant, seq))
	}
}

// errShunned is why a transaction is undone that met a task it can't act on:
// the next try passes over it.
var errShunned = errors.New("a task can't be acted on")

// unless shuns the task that err is about and returns errShunned, unless no
// task is the cause of err.
func (s *Swarm) unless(tenant string, seq uint64, err error) error {
	if broken(err) {
		return err
	}
	s.shun(tenant, seq, err)
	return errShunned
}

// eachTask does something to tasks, in batches of one transaction each. Where a
// batch fails, its tasks are done one by one, and those that fail are shunned.
func (s *Swarm) eachTask(ctx context.Context, by core.Caller, seqs []uint64, do func(tx *audit.Tx, seq uint64) error) error {
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
			if err = s.unless(by.Tenant, seq, err); !errors.Is(err, errShunned) {
				return err
			}
		}
	}
	return nil
}

// inspectBatch is how many headers one look of Inspect reads.
const inspectBatch = 1000

// Inspect reads the header of every task of a tenant that is not over, and
// names those that can't be. They are not scheduled.
func (s *Swarm) Inspect(ctx context.Context, tenant string) error {
	var from []byte
	for {
		n := 0
		bad := map[uint64]error{}
		err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			return tx.Scan(bLive, from, nil, false, func(key, _ []byte) bool {
				if n++; n > inspectBatch {
					from = slices.Clone(key)
					return false
				}
				var t Task
				seq := seqAt(key)
				err := loadTask(tx, seq, &t)
				if err == nil && t.Status[0] != key[0] {
					err = damagedTask(tenant, seq, fmt.Errorf("it is %s, and kept among those that are not", t.Status))
				}
				if err != nil {
					bad[seq] = err
				}
				return true
			})
		})
		for seq, err := range bad {
			if err = s.unless(tenant, seq, err); !errors.Is(err, errShunned) {
				return err
			}
		}
		if err != nil || n <= inspectBatch {
			return err
		}
	}
}

// inspect looks at every tenant, beside the scheduler.
func (s *Swarm) inspect(ctx context.Context) {
	// What ends it for all ends the scheduler too, which tells of it.
	_ = s.opt.Health.Tenants(ctx, component, s.tenants(), func(tenant string) error {
		err := s.Inspect(ctx, tenant)
		if errors.Is(err, store.ErrNoTenant) {
			return nil
		}
		return err
	})
}
