package skill

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
	"swarmdeck/store"
)

// countExecFloor counts the executions that left; they were the oldest.
const countExecFloor = countExecs + ".floor"

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
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		r := record.Removal{Kind: "executions"}
		for r.Count < record.Slice {
			e, err := s.oldestExec(tx, limit)
			if err != nil {
				return err
			}
			if e == nil {
				break
			}
			if err := forgetExec(tx, &r, e, uint64(tx.Counter(countExecFloor))+1); err != nil {
				return err
			}
		}
		if r.Count == record.Slice {
			next = numberKey(uint64(tx.Counter(countExecFloor)) + 1)
		}
		return r.Record(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("prune executions: %w", err)
	}
	return next, nil
}

// oldestExec is the oldest execution, nil where it may not leave.
func (s *Skills) oldestExec(tx *audit.Tx, limit record.Limit) (*Execution, error) {
	floor := tx.Counter(countExecFloor)
	excess := limit.Excess(tx.Counter(countExecs) - floor)
	if excess == 0 && limit.Before.IsZero() {
		return nil, nil
	}
	e, err := executions().at(tx, uint64(floor)+1)
	if err != nil || e == nil || e.Status == StatusPending || excess == 0 && !limit.Old(e.CompletedAt) {
		return nil, err
	}
	t, err := s.opt.Swarm.TaskIn(tx, e.TaskID)
	if err == nil && !t.Status.Terminal() || err != nil && core.AsError(err).Code != core.NotFound {
		return nil, err
	}
	return e, nil
}

func forgetExec(tx *audit.Tx, r *record.Removal, e *Execution, n uint64) error {
	value, err := tx.Get(bExec, numberKey(n))
	if err != nil {
		return err
	}
	r.Add(e.ExecutionID, value)
	tx.Add(countExecFloor, 1)
	tx.Gone("execution", e.ExecutionID)
	tx.Changed("execution", e.ExecutionID, nil)
	for _, ix := range []struct {
		bucket store.Bucket
		word   string
	}{{bExecAgent, e.AgentID}, {bExecSkill, e.SkillName}, {bExecStatus, string(e.Status)}} {
		tx.Add(countExecsOf(ix.bucket, ix.word), -1)
		err = errors.Join(err, tx.Delete(ix.bucket, wordKey(ix.word, n)))
	}
	task := append(numberKey(taskNumber(e.TaskID)), numberKey(n)...)
	return errors.Join(err, tx.Delete(bExecTask, task), tx.Delete(bExec, numberKey(n)))
}

// TaskLeaves implements swarm.Leaver: the plan of a run leaves with its task.
func (s *Skills) TaskLeaves(tx *audit.Tx, t *swarm.Task) error {
	for _, b := range []store.Bucket{bPlan, bTaskAgent} {
		k := numberKey(taskNumber(t.TaskID))
		there, err := tx.Get(b, k)
		if there != nil {
			err = tx.Delete(b, k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
