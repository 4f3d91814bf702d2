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
