package swarm

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// lease is one running task as this engine knows it. The claim itself (worker
// and fencing token) is in the task's header; the heartbeat is a matter of
// now and lives here only: a new engine finds every old lease lost.
type lease struct {
	tenant, task string
	session      string
	agent        string
	worker       string
	id           uint64
	beat         atomic.Int64 // unix µs of the last heartbeat
	bell         chan struct{}

	// Guarded by Swarm.mu.
	paused bool // an operator paused the task
	cancel bool // an operator cancelled it
	why    string
	frozen bool // its work has acknowledged a stop
	local  bool // run by this engine's scheduler
	since  time.Time
	billed time.Duration // wall time already counted to the budgets
}

func (l *lease) poke() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// leased notes a committed claim.
func (s *Swarm) leased(t *Task, worker string) {
	l := &lease{
		tenant: t.TenantID, task: t.TaskID, session: t.SessionID, agent: t.Agent, worker: worker, id: t.Lease,
		bell: make(chan struct{}, 1), since: t.StartedAt,
	}
	l.beat.Store(s.ledger.Clock().Now().UnixMicro())
	s.mu.Lock()
	s.leases[t.TaskID] = l
	s.mu.Unlock()
}

// released forgets a lease whose task went on.
func (s *Swarm) released(task string) {
	s.mu.Lock()
	delete(s.leases, task)
	s.mu.Unlock()
	s.ring()
}

// Beat renews every lease that a worker holds. A worker that is silent for
// the lease time (1 s) loses them all.
func (s *Swarm) Beat(worker string) {
	now := s.ledger.Clock().Now().UnixMicro()
	s.mu.Lock()
	for _, l := range s.leases {
		if l.worker == worker {
			l.beat.Store(now)
		}
	}
	s.mu.Unlock()
}

// expire takes the leases of silent workers away. When this process itself
// slept (a suspended laptop, a stopped process), everybody gets that time on
// top: the silence was ours.
func (s *Swarm) expire(ctx context.Context) error {
	now := s.ledger.Clock().Now()
	var lost []*lease
	s.mu.Lock()
	slept := now.Sub(s.tick) - 2*leaseTick
	if s.tick.IsZero() || slept < 0 {
		slept = 0
	}
	s.tick = now
	for _, l := range s.leases {
		if slept > 0 {
			l.beat.Add(slept.Microseconds())
		}
		if now.Sub(time.UnixMicro(l.beat.Load())) > s.opt.LeaseTTL {
			lost = append(lost, l)
		}
	}
	s.mu.Unlock()
	for _, l := range lost {
		if err := s.lose(ctx, l, "the worker missed its heartbeat"); err != nil {
			return err
		}
	}
	return nil
}

// lose requeues or fails the task of a lost lease.
func (s *Swarm) lose(ctx context.Context, l *lease, why string) error {
	by := core.Self(l.tenant, "leases")
	err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		var t Task
		if err := loadTask(tx, taskSeq(l.task), &t); err != nil {
			return err
		}
		if t.Status != Running || t.Lease != l.id {
			return nil
		}
		return s.loseTask(tx, &t, why)
	})
	if err != nil {
		return fmt.Errorf("take the lease of task %s away: %w", l.task, err)
	}
	s.mu.Lock()
	l.cancel = true // the work may still run: it must not
	l.why = "lease lost"
	l.poke()
	if s.leases[l.task] == l {
		delete(s.leases, l.task)
	}
	s.mu.Unlock()
	return nil
}

func (s *Swarm) loseTask(tx *audit.Tx, t *Task, why string) error {
	if err := s.voidGates(tx, t, why); err != nil {
		return err
	}
	e := TaskError{Code: "lease_lost", Message: why + " (worker " + t.Worker + ")", Retryable: true}
	if t.CancelRequested {
		return s.end(tx, t, Result{Status: Cancelled, Error: &TaskError{Code: "cancelled", Message: why}})
	}
	setWaiting(tx, t, false)
	if t.lastTry() {
		return s.end(tx, t, Result{Status: Failed, Error: &e})
	}
	return s.retryLater(tx, t, "lease.lost", e)
}
