package swarm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// leaseTick is how often leases and budgets are looked at while work runs.
const leaseTick = 250 * time.Millisecond

// Run schedules until ctx ends: it promotes due retries, claims tasks for free
// slots and agents, watches leases and budgets, and tends the running work. It
// then interrupts what runs, puts it back in the queue and returns when all of
// it has stopped. An error means that the store can't be used any more.
func (s *Swarm) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var tending sync.WaitGroup
	defer tending.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return nil
		case <-s.wake:
		case <-timer.C:
		}
		wait, err := s.step(ctx, func(t Task) {
			tending.Go(func() {
				if err := s.tend(ctx, t); err != nil {
					stop(err)
				}
			})
		})
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("schedule: %w", err)
		}
		timer.Reset(wait)
	}
}

// step does what is to do now and says when to look again at the latest.
func (s *Swarm) step(ctx context.Context, start func(Task)) (time.Duration, error) {
	if err := s.expire(ctx); err != nil {
		return 0, err
	}
	wait := time.Minute
	for _, tenant := range s.tenants() {
		now := s.ledger.Clock().Now()
		s.mu.Lock()
		due := s.world(tenant).nextDue
		s.mu.Unlock()
		if !due.IsZero() && !due.After(now) {
			next, err := s.promoteDue(ctx, tenant)
			if err != nil {
				return 0, err
			}
			due = next
		}
		if !due.IsZero() {
			wait = min(wait, max(due.Sub(now), time.Millisecond))
		}
		if err := s.watchBudgets(ctx, tenant); err != nil {
			return 0, err
		}
		if err := s.assign(ctx, tenant, start); err != nil {
			return 0, err
		}
	}
	if s.busy() > 0 {
		wait = min(wait, leaseTick)
	}
	return wait, nil
}

func (s *Swarm) promoteDue(ctx context.Context, tenant string) (time.Time, error) {
	s.mu.Lock()
	s.world(tenant).nextDue = time.Time{} // commits from here on set it again
	s.mu.Unlock()
	next, err := s.promote(ctx, tenant)
	if err == nil && !next.IsZero() {
		s.mu.Lock()
		if w := s.world(tenant); w.nextDue.IsZero() || next.Before(w.nextDue) {
			w.nextDue = next
		}
		s.mu.Unlock()
	}
	return next, err
}

func (s *Swarm) tenants() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.worlds))
	for id := range s.worlds {
		out = append(out, id)
	}
	return out
}

// busy counts the tasks that this engine runs.
func (s *Swarm) busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases)
}

// slotsLeft counts the free slots for tasks that go to no agent.
func (s *Swarm) slotsLeft() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := 0
	for _, l := range s.leases {
		if l.agent == "" && l.local {
			used++
		}
	}
	return s.opt.Slots - used
}

// assign claims what can start now. Agents have their own capacity, so tasks
// for them never wait for a slot.
func (s *Swarm) assign(ctx context.Context, tenant string, start func(Task)) error {
	by := core.Self(tenant, "scheduler")
	for _, n := range []struct{ general, agents int }{{max(0, s.slotsLeft()), 0}, {0, 64}} {
		lanes := s.openLanes(tenant, n.general, n.agents)
		tasks, err := s.claim(ctx, by, localWorker, n.general+n.agents, lanes)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			s.mu.Lock()
			if l := s.leases[t.TaskID]; l != nil {
				l.local = true
			}
			s.mu.Unlock()
			start(t)
		}
	}
	return nil
}

// localWorker is the name under which this engine holds its leases.
const localWorker = "engine"

// tend carries one claimed task through its run. It is the only goroutine
// that starts, stops or continues its work.
func (s *Swarm) tend(ctx context.Context, t Task) error {
	s.mu.Lock()
	l := s.leases[t.TaskID]
	r := s.runners[t.Kind]
	s.mu.Unlock()
	if l == nil || l.id != t.Lease {
		return nil
	}
	by := core.Self(t.TenantID, "scheduler")
	log := newLogPipe(s, by, t.TaskID)
	defer log.close()
	out, ok := s.carry(ctx, l, t, r, log)
	log.flush(context.WithoutCancel(ctx))
	if !ok {
		return nil
	}
	// The outcome must reach the disk although the engine is closing.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if ctx.Err() != nil {
		return ignoreLate(s.giveBack(end, by, t, out))
	}
	_, err := s.Complete(end, by, t.TaskID, t.Lease, out)
	if isCode(err, core.InvalidInput) { // a runner broke its contract
		_, err = s.Complete(end, by, t.TaskID, t.Lease, Outcome{
			Status: Failed, Error: &TaskError{Code: "bad_outcome", Message: err.Error()},
		})
	}
	return ignoreLate(err)
}

// carry starts the work and minds it until it has ended. ok is false when the
// lease was lost meanwhile, so that there is nothing to report.
func (s *Swarm) carry(ctx context.Context, l *lease, t Task, r Runner, log *logPipe) (out Outcome, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			out, ok = Outcome{Status: Failed, Error: &TaskError{Code: "runner_panic", Message: fmt.Sprint(p)}}, true
		}
	}()
	if r == nil {
		return Outcome{Status: Failed, Error: &TaskError{Code: "no_runner", Message: "no runner for kind " + t.Kind}}, true
	}
	work, err := r.Start(ctx, Job{
		Task: t,
		Log:  log.add,
		Beat: func() { l.beat.Store(s.ledger.Clock().Now().UnixMicro()) },
		Use: func(tokens int64, cost float64) {
			// A usage that can't be written shows at the next write of the run.
			_ = s.Use(context.WithoutCancel(ctx), core.Self(t.TenantID, "scheduler"), t.TaskID, tokens, cost)
		},
		Spill: filepath.Join(s.opt.Spill, t.TenantID, fmt.Sprintf("%s.%d", t.TaskID, t.Attempt)),
	})
	if err != nil {
		e := core.AsError(err)
		return Outcome{Status: Failed, Error: &TaskError{Code: "start_failed", Message: e.Message, Retryable: e.Code == core.Unavailable}}, true
	}
	m := minder{s: s, l: l, work: work, left: time.Duration(t.TimeoutS) * time.Second}
	return m.run(ctx, log)
}

func ignoreLate(err error) error {
	if err == nil || errors.Is(err, errLate) || errors.Is(err, store.ErrClosed) || isCode(err, core.Conflict) {
		return nil
	}
	return err
}
