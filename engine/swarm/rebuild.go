package swarm

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// rebuild reads what the scheduler keeps in mind. Its cost is the live work, not
// the history. What can't be read holds what it might have held: the tasks of a
// session stay queued, a budget counts as used up, an emergency stop as pressed.
func (s *Swarm) rebuild(ctx context.Context, tenant string) error {
	return errors.Join(
		s.Sessions.Read(ctx, tenant), s.Budgets.Read(ctx, tenant), s.EStops.Read(ctx, tenant), s.slotted.Read(ctx, tenant), s.rebuildWork(ctx, tenant),
	)
}

// rebuildWork is rebuild for the queue.
func (s *Swarm) rebuildWork(ctx context.Context, tenant string) error {
	var over []uint64
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		s.mu.Lock()
		s.granted[tenant] = uint64(tx.Counter(countLease)) // no work of ours runs under an older one
		s.mu.Unlock()
		if err := s.queue.Read(tx); err != nil {
			return err
		}
		over, err = s.tasks.Released(tx)
		return err
	})
	for _, dep := range over {
		s.releaseLater(tenant, dep, 0)
	}
	return err
}

// Recover takes the leases of the engine that died away: its tasks are queued
// again, or fail. It is called once, when all runners are there: those that follow
// their tasks miss none of it.
func (s *Swarm) Recover(ctx context.Context) error {
	return s.opt.Health.Tenants(ctx, component, s.tenants(), func(tenant string) error { return s.recover(ctx, tenant) })
}

// recover is Recover for one tenant. A task whose work had ended waits for a person
// and no worker: it goes on waiting.
func (s *Swarm) recover(ctx context.Context, tenant string) error {
	var lost []uint64
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		lost, err = s.tasks.Live(tx, task.Running)
		return err
	})
	if err != nil {
		return err
	}
	return s.eachTask(ctx, core.Self(tenant, "recovery"), lost, func(tx *audit.Tx, seq uint64) error {
		var t task.Task
		if err := s.tasks.Load(tx, seq, &t); err != nil {
			return err
		}
		if t.Status != task.Running {
			return task.Damaged(tenant, seq, fmt.Errorf("it is %s, and kept among the running", t.Status))
		}
		if _, there, err := parked.Get(tx, record.Seq(seq)); err != nil || there {
			return err
		}
		return s.orphaned(tx, &t, "the engine ended while it ran")
	})
}
