package swarm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// startAsk is the question at a task's start, with the title its runner gave.
type startAsk struct {
	judge.Ask
	title string
}

// startAsk builds the question for a task's start gate from its input.
func (s *Swarm) startAsk(t *Task, input core.Raw) (startAsk, error) {
	r, err := s.runner(t.Kind)
	if err != nil {
		return startAsk{}, err
	}
	title, action, err := r.Check(t.TenantID, input)
	if err != nil {
		return startAsk{}, err
	}
	if tg, ok := r.(targeter); ok {
		t.Agent = tg.Target(input)
	}
	intent := t.Intent
	if intent == "" {
		intent = title
	}
	ask := judge.Ask{
		Gate: judge.GateStart, TraceID: t.TraceID, TaskID: t.TaskID, Session: t.SessionID,
		Attempt: t.Attempt, Priority: t.Priority, Action: action, Intent: intent,
		Agent: judge.AgentRef{Name: t.Agent},
		By:    core.Caller{Tenant: t.TenantID, Name: t.CreatedBy, Kind: t.CreatedKind},
	}
	if d, ok := r.(agentDescriber); ok && t.Agent != "" {
		ask.Agent = d.AgentRef(t.TenantID, t.Agent)
	}
	return startAsk{ask, cut(title, 200)}, nil
}

// promote passes the due tasks of a tenant through their gate: retries after
// their back-off, and tasks whose approval no longer stood. It returns when
// the next one is due, zero for none.
func (s *Swarm) promote(ctx context.Context, tenant string) (time.Time, error) {
	for ctx.Err() == nil {
		var t Task
		var next time.Time
		now := s.ledger.Clock().Now()
		err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			var seq uint64
			if err := tx.Scan(bDue, nil, nil, false, func(key, _ []byte) bool {
				next, seq = dueTime(key), seqAt(key)
				return false
			}); err != nil || next.IsZero() || next.After(now) {
				return err
			}
			if err := loadTask(tx, seq, &t); err != nil {
				return err
			}
			input, err := tx.Get(bInput, key8(seq))
			t.Input = append(core.Raw(nil), input...)
			return err
		})
		if err != nil {
			return next, fmt.Errorf("read the schedule of %s: %w", tenant, err)
		}
		if next.IsZero() || next.After(now) {
			return next, nil
		}
		if err := s.promoteOne(ctx, next, &t); err != nil {
			return next, err
		}
	}
	return time.Time{}, ctx.Err()
}

func (s *Swarm) promoteOne(ctx context.Context, due time.Time, t *Task) error {
	by := core.Self(t.TenantID, "scheduler")
	ask, err := s.startAsk(t, t.Input)
	if err != nil {
		// The runner no longer takes what it took: the task can't run.
		e := core.AsError(err)
		return s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			return s.end(tx, t, Result{Status: Failed, Error: &TaskError{Code: "invalid_input", Message: e.Message}})
		})
	}
	for {
		v := s.judge.Evaluate(ctx, t.TenantID, ask.Ask)
		err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			var now Task
			if err := loadTask(tx, taskSeq(t.TaskID), &now); err != nil {
				return err
			}
			if err := tx.Delete(bDue, dueKey(due, taskSeq(t.TaskID))); err != nil {
				return err
			}
			if now.Status != Queued || !now.RunAt.Truncate(time.Microsecond).Equal(due) {
				return s.move(tx, &now, now.Status, "task.schedule_dropped", nil)
			}
			now.RunAt = time.Time{}
			return s.pass(tx, &now, Queued, "task.requeued", ask, v)
		})
		if !errors.Is(err, judge.ErrStale) {
			if err != nil {
				return fmt.Errorf("requeue task %s: %w", t.TaskID, err)
			}
			return nil
		}
	}
}

// voidGates closes the open approvals of a task that goes away.
func (s *Swarm) voidGates(tx *audit.Tx, t *Task, reason string) error {
	return s.judge.Void(tx, func(a *judge.Approval) bool { return a.TaskID == t.TaskID && a.Gate != judge.GateBudget }, reason)
}
