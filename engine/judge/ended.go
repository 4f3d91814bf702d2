package judge

import (
	"context"
	"math"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/record"
)

// endedSlice is how many approvals one read transaction looks at.
const endedSlice = 2000

// Ended calls fn with the approvals that were answered or expired at or after
// since, the newest asked first; voided ones are not among them. It looks at
// most (1 or more) approvals and reports whether those were all there are.
func (j *Judge) Ended(ctx context.Context, tenant string, since time.Time, most int, fn func(*Approval)) (all bool, err error) {
	// None waits longer than maxOpen: older asks have ended before.
	oldest := since.Add(-maxOpen)
	below := uint64(math.MaxUint64)
	for seen := 0; seen < most && !all; {
		n := 0
		err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			all = true
			return j.newest(tx, below, func(number uint64, a *Approval) bool {
				if n == endedSlice || seen == most {
					all = false
					return false
				}
				n++
				seen++
				below = number
				if a.CreatedAt.Before(oldest) {
					return false
				}
				if (a.Status == Approved || a.Status == Refused || a.Status == Expired) && !a.AnsweredAt.Before(since) {
					fn(a)
				}
				return true
			})
		})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return false, err
		}
	}
	return all, nil
}

// newest visits the approvals below a number, the newest first, until visit
// returns false.
func (j *Judge) newest(tx *audit.Tx, below uint64, visit func(number uint64, a *Approval) bool) error {
	n := j.approvals.Newest(tx)
	gone := n - uint64(j.approvals.Count(tx))
	for n = min(n, below-1); n > gone; n-- {
		a, err := j.approvals.At(tx, record.Seq(n))
		if err != nil {
			return err
		}
		if a != nil && !visit(n, a) {
			break
		}
	}
	return nil
}
