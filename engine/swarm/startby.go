package swarm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// startBy notes the deadline of a new task.
func (s *Swarm) startBy(tx *audit.Tx, t *task.Task) error {
	at := t.StartBy()
	if at.IsZero() {
		return nil
	}
	tx.OnCommit(func() { s.dueAt(t.TenantID, at) })
	return tx.Put(bStartBy, dueKey(at, t.Seq()), nil)
}

// started forgets the deadline of a queued task that starts or ends.
func (s *Swarm) started(tx *audit.Tx, t *task.Task) error {
	at := t.StartBy()
	if at.IsZero() {
		return nil
	}
	return tx.Delete(bStartBy, dueKey(at, t.Seq()))
}

// tooLate ends a queued task that nobody started in time.
func (s *Swarm) tooLate(tx *audit.Tx, t *task.Task) error {
	if err := s.voidGates(tx, t, "the task did not start in time"); err != nil {
		return err
	}
	return s.end(tx, t, task.Result{Status: task.TimedOut, Error: &task.Error{
		Code: "start_timed_out", Message: "the task was not started within start_timeout_s", Retryable: true,
	}})
}

// lapse ends the tasks of a tenant that had to start by now, and returns when
// the next one must have, zero for none.
func (s *Swarm) lapse(ctx context.Context, tenant string) (next time.Time, err error) {
	if next, err = s.nextStart(ctx, tenant); err != nil || next.IsZero() || next.After(s.ledger.Clock().Now()) {
		return next, err
	}
	err = s.ledger.Update(ctx, core.Self(tenant, "scheduler"), func(tx *audit.Tx) error {
		late, upTo := [][]byte(nil), dueKey(tx.Now().Add(time.Microsecond), 0)
		next = time.Time{}
		if err := tx.Scan(bStartBy, nil, nil, false, func(key, _ []byte) bool {
			if s.isShunned(tenant, record.LastSeq(key)) {
				return true
			}
			if bytes.Compare(key, upTo) >= 0 || len(late) == changeBatch {
				next = dueTime(key)
				return false
			}
			late = append(late, bytes.Clone(key))
			return true
		}); err != nil {
			return err
		}
		for _, key := range late {
			var t task.Task
			if err := s.tasks.Load(tx, record.LastSeq(key), &t); err != nil {
				return s.unless(tenant, record.LastSeq(key), err)
			}
			if t.Status != task.Queued { // a task before it in this very batch ended it
				continue
			}
			if err := s.tooLate(tx, &t); err != nil {
				return s.unless(tenant, record.LastSeq(key), err)
			}
		}
		return nil
	})
	if errors.Is(err, errShunned) {
		return s.lapse(ctx, tenant)
	}
	if err != nil {
		return next, fmt.Errorf("end the tasks of %s that did not start in time: %w", tenant, err)
	}
	return next, nil
}

// nextStart is the earliest deadline of a tenant.
func (s *Swarm) nextStart(ctx context.Context, tenant string) (next time.Time, err error) {
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return tx.Scan(bStartBy, nil, nil, false, func(key, _ []byte) bool {
			if s.isShunned(tenant, record.LastSeq(key)) {
				return true
			}
			next = dueTime(key)
			return false
		})
	})
	if err != nil {
		return next, fmt.Errorf("read the start deadlines of %s: %w", tenant, err)
	}
	return next, nil
}
