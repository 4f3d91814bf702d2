package swarm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/queue"
	"swarmdeck/engine/task"
)

var _ budget.Work = (*Swarm)(nil)

func (s *leasing) BudgetChanged(tenant string) { s.poke(tenant) }

func (s *shared) BudgetUsed() { s.ring() }

func (s *ending) CancelSpenders(tx *audit.Tx, subject, why string) error {
	var seqs []uint64
	s.mu.Lock()
	for _, l := range s.leases {
		if l.tenant == tx.Tenant() && l.spender().Draws(subject) {
			seqs = append(seqs, task.Seq(l.task))
		}
	}
	s.mu.Unlock()
	for _, seq := range seqs {
		var t task.Task
		if err := s.tasks.Load(tx, seq, &t); err != nil {
			return err
		}
		if t.Status == task.Running {
			if err := s.cancel(tx, &t, why); err != nil {
				return err
			}
		}
	}
	return nil
}

// denied is how a task ends that was to draw on a budget of which more was denied.
func denied(subject string) task.Result {
	return task.Result{Status: task.Blocked, Error: &task.Error{
		Code: "budget_denied", Message: "the budget of " + subject + " is used up, and more was denied",
	}}
}

// blockDenied ends what is queued on a budget of which more was denied. Tasks
// past one on their number end as they are taken.
func (s *ending) blockDenied(ctx context.Context, tenant string) error {
	if s.EStops.On(tenant) {
		return nil
	}
	lanes := s.queue.Lanes(tenant, func(l queue.Lane) bool { return s.Budgets.Denied(tenant, budget.Spender(l), true) != "" })
	for left := 0; left == 0 && len(lanes) > 0; {
		err := s.ledger.Update(ctx, core.Self(tenant, "budgets"), func(tx *audit.Tx) error {
			left = changeBatch
			for _, l := range lanes {
				of := s.Budgets.Denied(tenant, budget.Spender(l), true)
				for ; left > 0 && of != ""; left-- {
					f, ok, err := s.front(tx, l)
					if err != nil {
						return err
					}
					if !ok {
						break
					}
					var t task.Task
					if err = s.tasks.Load(tx, f.Seq(), &t); err == nil {
						err = s.end(tx, &t, denied(of))
					}
					if err != nil {
						return s.unless(tenant, f.Seq(), err)
					}
				}
			}
			return nil
		})
		if errors.Is(err, errQuarantined) {
			left = 0
			continue
		}
		if err != nil {
			return fmt.Errorf("end what a denied budget holds: %w", err)
		}
	}
	return nil
}

func (l *lease) spender() budget.Spender { return budget.Spender{Session: l.session, Agent: l.agent} }

func spender(t *task.Task) budget.Spender {
	return budget.Spender{Session: t.SessionID, Agent: t.Agent}
}

// bill bills the running time of an attempt that ends. One of an engine that
// died has no lease.
func (s *leasing) bill(tx *audit.Tx, t *task.Task) error {
	ran := time.Duration(-1)
	s.mu.Lock()
	if l := s.leases[refOf(t)]; l != nil && l.id == t.Lease {
		ran = l.ran(s.uptime())
	}
	s.mu.Unlock()
	return s.Budgets.Bill(tx, t.Seq(), spender(t), ran)
}

// watchBudgets notes the running time, and looks for limits that were gone past.
// It reports whether it must look again soon: work that runs draws on a budget.
func (s *ending) watchBudgets(ctx context.Context, tenant string) (soon bool, err error) {
	if !s.Budgets.Any(tenant) {
		return false, nil
	}
	if soon, err = s.noteWall(ctx, tenant); err != nil {
		return soon, fmt.Errorf("note the running time: %w", err)
	}
	if err := s.Budgets.Watch(ctx, tenant); err != nil {
		return soon, err
	}
	return soon, s.blockDenied(ctx, tenant)
}

// noteWall writes down how long work has run, once a second, and reports whether
// anything runs.
func (s *leasing) noteWall(ctx context.Context, tenant string) (runs bool, err error) {
	due := func(now time.Duration) (out []*lease) {
		for _, l := range s.leases {
			if l.tenant == tenant {
				runs = true
				if l.ran(now)-l.noted >= time.Second {
					out = append(out, l)
				}
			}
		}
		return out
	}
	s.mu.Lock()
	now := due(s.uptime())
	s.mu.Unlock()
	if len(now) == 0 {
		return runs, nil
	}
	return runs, s.ledger.Append(ctx, core.Self(tenant, "budgets"), func(tx *audit.Tx) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := s.uptime()
		for _, l := range due(now) {
			ran := l.ran(now)
			if err := s.Budgets.Note(tx, task.Seq(l.task), l.spender(), ran); err != nil {
				return err
			}
			tx.OnCommit(func() {
				s.mu.Lock()
				l.noted = ran
				s.mu.Unlock()
			})
		}
		tx.Changed("usage", tenant)
		return nil
	})
}
