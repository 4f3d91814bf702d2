package skill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// PruneExecutions removes a slice of the oldest executions that the limit lets
// go. One that runs, or whose task does, stays, and so does what came after it.
// It returns nil when it is through.
func (s *Skills) PruneExecutions(ctx context.Context, by core.Caller, limit record.Limit, _ []byte) (next []byte, err error) {
	due := false
	err = s.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		e, err := s.oldestExec(tx, limit)
		due = e != nil
		return err
	})
	if err != nil || !due {
		return nil, err
	}
	r := record.Removal{Kind: "executions"}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		r = record.Removal{Kind: r.Kind} // it runs again where the disk was full
		for r.Count < record.Slice {
			e, err := s.oldestExec(tx, limit)
			if err != nil {
				return err
			}
			if e == nil {
				break
			}
			if err := s.execs.Leave(tx, &r, e); err != nil {
				return err
			}
		}
		return r.Record(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("prune executions: %w", err)
	}
	if r.Count == record.Slice {
		next = []byte(r.Last)
	}
	return next, nil
}

// oldestExec is the oldest execution, nil where it may not leave.
func (s *Skills) oldestExec(tx *audit.Tx, limit record.Limit) (*Execution, error) {
	e, err := s.execs.Leaving(tx, limit, func(e *Execution) time.Time { return e.CompletedAt })
	if err != nil || e == nil {
		return nil, err
	}
	t, err := s.opt.Tasks.In(tx, e.TaskID)
	if err == nil && !t.Status.Terminal() || err != nil && core.AsError(err).Code != core.NotFound {
		return nil, err
	}
	return e, nil
}

// TaskLeaves implements task.Leaver: the plan of a run leaves with its task.
func (s *Skills) TaskLeaves(tx *audit.Tx, t *task.Task) error {
	return errors.Join(plans.Drop(tx, ofTask(t.TaskID)), taskAgents.Drop(tx, ofTask(t.TaskID)))
}
