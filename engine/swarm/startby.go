package swarm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/queue"
	"swarmdeck/engine/task"
)

// startBy notes the deadline of a new task.
func (s *shared) startBy(tx *audit.Tx, t *task.Task) error {
	at := t.StartBy()
	if at.IsZero() {
		return nil
	}
	return s.queue.At(tx, queue.StartBy, queue.Entry{At: at, Seq: t.Seq()})
}

// started forgets the deadline of a queued task that starts or ends.
func (s *shared) started(tx *audit.Tx, t *task.Task) error {
	at := t.StartBy()
	if at.IsZero() {
		return nil
	}
	return queue.StartBy.Drop(tx, queue.Entry{At: at, Seq: t.Seq()})
}

// tooLate ends a queued task that nobody started in time.
func (s *ending) tooLate(tx *audit.Tx, t *task.Task) error {
	if err := s.voidGates(tx, t, "the task did not start in time"); err != nil {
		return err
	}
	return s.end(tx, t, task.Result{Status: task.TimedOut, Error: &task.Error{
		Code: "start_timed_out", Message: "the task was not started within start_timeout_s", Retryable: true,
	}})
}

// lapse ends the tasks of a tenant that had to start by now, and returns when
// the next one must have, zero for none.
func (s *ending) lapse(ctx context.Context, tenant string) (next time.Time, err error) {
	var late []queue.Entry
	look := func(tx *audit.Tx) (err error) {
		late, next, err = queue.StartBy.Due(tx, tx.Now(), changeBatch, s.quarantinedIn(tenant))
		return err
	}
	if err = s.ledger.View(ctx, tenant, look); err != nil {
		return next, fmt.Errorf("read the start deadlines of %s: %w", tenant, err)
	}
	if len(late) == 0 {
		return next, nil
	}
	err = s.ledger.Update(ctx, core.Self(tenant, "scheduler"), func(tx *audit.Tx) error {
		if err := look(tx); err != nil {
			return err
		}
		for _, e := range late {
			var t task.Task
			if err := s.tasks.Load(tx, e.Seq, &t); err != nil {
				return s.unless(tenant, e.Seq, err)
			}
			if t.Status != task.Queued { // a task before it in this very batch ended it
				continue
			}
			if err := s.tooLate(tx, &t); err != nil {
				return s.unless(tenant, e.Seq, err)
			}
		}
		return nil
	})
	if errors.Is(err, errQuarantined) {
		return s.lapse(ctx, tenant)
	}
	if err != nil {
		return next, fmt.Errorf("end the tasks of %s that did not start in time: %w", tenant, err)
	}
	return next, nil
}

// taskChanged runs after the commit that wrote a task's header: its work looks
// again, and what kept it from being claimed is over.
func (s *leasing) taskChanged(t *task.Task) {
	s.mu.Lock()
	if l := s.leases[refOf(t)]; l != nil {
		l.paused, l.cancel = t.Paused, t.CancelRequested
		l.poke()
	}
	s.mu.Unlock()
	s.mended(t)
}

// laneOf is where a task waits to be claimed.
func laneOf(t *task.Task) queue.Lane { return queue.Lane{Session: t.SessionID, Agent: t.Agent} }

// enqueue makes a queued task claimable unless something still holds it.
func (s *shared) enqueue(tx *audit.Tx, t *task.Task) error {
	if t.Status != task.Queued || t.Waiting != "" || t.Pending > 0 {
		return nil
	}
	return s.queue.Put(tx, laneOf(t), t.Priority, t.Seq())
}

// dequeue takes a queued task out of every place it may wait in.
func (s *shared) dequeue(tx *audit.Tx, t *task.Task) error {
	seq := t.Seq()
	if err := s.queue.Drop(tx, laneOf(t), t.Priority, seq); err != nil {
		return err
	}
	if !t.RunAt.IsZero() {
		if err := queue.Gate.Drop(tx, queue.Entry{At: t.RunAt, Seq: seq}); err != nil {
			return err
		}
	}
	if err := s.started(tx, t); err != nil {
		return err
	}
	for _, dep := range t.After {
		if err := s.tasks.DropAfter(tx, task.Seq(dep), seq); err != nil {
			return err
		}
	}
	return nil
}

// regate sends a queued task back to the judge at a time.
func (s *shared) regate(tx *audit.Tx, t *task.Task, at time.Time, event string, detail core.Raw) error {
	t.ApprovalID, t.RunAt = "", at
	if err := s.tasks.Move(tx, t, task.Queued, event, detail); err != nil {
		return err
	}
	return s.schedule(tx, t)
}

func (s *shared) schedule(tx *audit.Tx, t *task.Task) error {
	return s.queue.At(tx, queue.Gate, queue.Entry{At: t.RunAt, Seq: t.Seq()})
}
