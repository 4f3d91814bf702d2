package judge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// unusedStays is how long an approval stays that was given and not used yet.
const unusedStays = 7 * 24 * time.Hour

// PruneDecisions removes a slice of the oldest decisions that the limit lets
// go, and then the approvals that are older than all decisions that are left.
// An open approval stays, and so does what came after it. It returns nil when it
// is through.
func (j *Judge) PruneDecisions(ctx context.Context, by core.Caller, limit record.Limit, _ []byte) (next []byte, err error) {
	due := false
	err = j.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		row, err := j.leaving(tx, limit)
		due = row != nil
		return err
	})
	if err != nil || !due {
		return nil, err
	}
	err = j.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		r := record.Removal{Kind: "decisions"}
		var left *decisionRow
		for r.Count < record.Slice {
			row, err := j.leaving(tx, limit)
			if err != nil {
				return err
			}
			if row == nil {
				break
			}
			row.DecisionID = core.NewID(core.DecisionPrefix, tx.Tenant(), row.Number)
			if err := errors.Join(j.decisions.Leave(tx, &r, row), drop(tx, pastAsks, record.Seq(row.Number))); err != nil {
				return err
			}
			left = row
		}
		if r.Count == record.Slice {
			next = record.Seq(left.Number + 1)
		}
		if err := r.Record(tx); err != nil {
			return err
		}
		return j.pruneApprovals(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("prune decisions: %w", err)
	}
	return next, nil
}

// leaving is the oldest decision, nil where it may not leave.
func (j *Judge) leaving(tx *audit.Tx, limit record.Limit) (row *decisionRow, err error) {
	var bad error
	row, err = j.decisions.Leaving(tx, limit, func(r *decisionRow) (ended time.Time) {
		open := false
		if r.ApprovalID != "" {
			_, open, bad = approvalOpen.Get(tx, keyOf(r.ApprovalID))
		}
		if !open {
			ended = r.CreatedAt
		}
		return ended
	})
	return row, errors.Join(err, bad)
}

// drop removes a value that there may be.
func drop[V any](tx *audit.Tx, rows record.Rows[V], at record.Key) error {
	_, there, err := rows.Get(tx, at)
	if there {
		err = rows.Delete(tx, at)
	}
	return err
}

// pruneApprovals removes approvals that are over and older than the oldest
// decision that is left.
func (j *Judge) pruneApprovals(tx *audit.Tx) error {
	oldest, err := j.decisions.At(tx, record.Seq(j.decisions.Newest(tx)+1-uint64(j.decisions.Count(tx))))
	if err != nil || oldest == nil {
		return err
	}
	r := record.Removal{Kind: "approvals"}
	for r.Count < record.Slice {
		a, err := j.approvals.Leaving(tx, record.Limit{Before: oldest.CreatedAt}, func(a *Approval) (ended time.Time) {
			if a.over(tx.Now()) {
				ended = a.CreatedAt
			}
			return ended
		})
		if err != nil {
			return err
		}
		if a == nil {
			break
		}
		if err := errors.Join(j.approvals.Leave(tx, &r, a), drop(tx, canaries, keyOf(a.ApprovalID))); err != nil {
			return err
		}
	}
	return r.Record(tx)
}

// over says whether nothing comes of an approval any more.
func (a *Approval) over(now time.Time) bool {
	switch a.Status {
	case Open:
		return false
	case Approved:
		return !a.UsedAt.IsZero() || now.Sub(a.AnsweredAt) > unusedStays
	}
	return true
}
