package judge

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// floorOf names the counter of the records that left of those that another
// counts: they were the oldest.
func floorOf(counter string) string { return counter + ".floor" }

// unusedStays is how long an approval stays that was given and not used yet.
const unusedStays = 7 * 24 * time.Hour

// PruneDecisions removes a slice of the oldest decisions that the limit lets
// go, and then the approvals that are older than all decisions that are left.
// An open approval stays, and so does what came after it. It returns nil when it
// is through.
func (j *Judge) PruneDecisions(ctx context.Context, by core.Caller, limit record.Limit, _ []byte) (next []byte, err error) {
	due := false
	err = j.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) (err error) {
		due, err = j.decisionLeaves(tx, limit, uint64(tx.Counter(floorOf(countDecisions)))+1)
		return err
	})
	if err != nil || !due {
		return nil, err
	}
	err = j.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		r := record.Removal{Kind: "decisions"}
		at := uint64(tx.Counter(floorOf(countDecisions))) + 1
		for r.Count < record.Slice {
			leaves, err := j.decisionLeaves(tx, limit, at)
			if err != nil {
				return err
			}
			if !leaves {
				break
			}
			if err := forgetDecision(tx, &r, at); err != nil {
				return err
			}
			at++
		}
		if r.Count == record.Slice {
			next = key(at)
		}
		if err := r.Record(tx); err != nil {
			return err
		}
		return j.pruneApprovals(tx, at)
	})
	if err != nil {
		return nil, fmt.Errorf("prune decisions: %w", err)
	}
	return next, nil
}

// decisionLeaves says whether the oldest decision may leave.
func (j *Judge) decisionLeaves(tx *audit.Tx, limit record.Limit, seq uint64) (bool, error) {
	n := tx.Counter(countDecisions)
	if seq > uint64(n) || limit.Before.IsZero() && limit.Excess(n-int64(seq)+1) == 0 {
		return false, nil
	}
	value, err := tx.Get(decisions, key(seq))
	if err != nil {
		return false, err
	}
	var row decisionRow
	if err := core.DecodeStored(value, &row); err != nil {
		return false, &core.Damaged{Noun: "decision", Key: core.NewID(core.DecisionPrefix, tx.Tenant(), seq), Err: err}
	}
	if limit.Excess(n-int64(seq)+1) == 0 && !limit.Old(row.CreatedAt) {
		return false, nil
	}
	if row.ApprovalID == "" {
		return true, nil
	}
	_, _, a, _ := core.ParseID(row.ApprovalID)
	open, err := tx.Get(approvalsOpen, key(a))
	return open == nil, err
}

func forgetDecision(tx *audit.Tx, r *record.Removal, seq uint64) error {
	value, err := tx.Get(decisions, key(seq))
	if err != nil {
		return err
	}
	var row decisionRow
	if err := core.DecodeStored(value, &row); err != nil {
		return err
	}
	r.Add(core.NewID(core.DecisionPrefix, tx.Tenant(), seq), value)
	tx.Add(floorOf(countDecisions), 1)
	if row.Decision != Approve {
		tx.Add(countDecisions+"."+string(row.Decision), -1)
		err = tx.Delete(decisionRare, rareKey(row.Decision, seq))
	}
	asked, bad := tx.Get(pastAsks, key(seq))
	if asked != nil {
		bad = tx.Delete(pastAsks, key(seq))
	}
	return errors.Join(err, bad, tx.Delete(decisions, key(seq)))
}

// pruneApprovals removes approvals that are over and older than the oldest
// decision that is left.
func (j *Judge) pruneApprovals(tx *audit.Tx, oldest uint64) error {
	r := record.Removal{Kind: "approvals"}
	var before time.Time
	value, err := tx.Get(decisions, key(oldest))
	if err != nil || value == nil {
		return err
	}
	var row decisionRow
	if err := core.DecodeStored(value, &row); err != nil {
		return err
	}
	before = row.CreatedAt
	floor := uint64(tx.Counter(floorOf(countApprovals)))
	for r.Count < record.Slice && floor < uint64(tx.Counter(countApprovals)) {
		value, err := tx.Get(approvals, key(floor+1))
		if err != nil || value == nil {
			return err
		}
		a, err := decodeApproval(value)
		if err != nil {
			return err
		}
		if !a.over(tx.Now()) || !a.CreatedAt.Before(before) {
			break
		}
		if err := forgetApproval(tx, &r, a, value); err != nil {
			return err
		}
		floor++
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

func forgetApproval(tx *audit.Tx, r *record.Removal, a *Approval, value []byte) error {
	_, _, n, _ := core.ParseID(a.ApprovalID)
	r.Add(a.ApprovalID, value)
	tx.Add(floorOf(countApprovals), 1)
	tx.Gone("approval", a.ApprovalID)
	tx.Changed("approval", a.ApprovalID, nil)
	for _, row := range []struct {
		bucket store.Bucket
		key    []byte
	}{{approvalsShape, binary.BigEndian.AppendUint64(bytes.Clone(shape(a)), n)}, {canaries, key(n)}} {
		there, err := tx.Get(row.bucket, row.key)
		if there != nil {
			err = tx.Delete(row.bucket, row.key)
		}
		if err != nil {
			return err
		}
	}
	return tx.Delete(approvals, key(n))
}
