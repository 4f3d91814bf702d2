package judge

import (
	"context"
	"errors"
	"time"

	"swarmdeck/engine/audit"
)

// endedSlice is how many approvals one read transaction looks at.
const endedSlice = 2000

// Ended calls fn with the approvals that were answered or expired at or after
// since, the newest asked first; voided ones are not among them. It looks at
// most (1 or more) approvals and reports whether those were all there are.
func (j *Judge) Ended(ctx context.Context, tenant string, since time.Time, most int, fn func(*Approval)) (all bool, err error) {
	// None waits longer than maxOpen: older asks have ended before.
	oldest := since.Add(-maxOpen)
	var to []byte
	for seen := 0; seen < most && !all; {
		n := 0
		err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			var bad error
			all = true
			err := tx.Scan(approvals, nil, to, true, func(k, value []byte) bool {
				if n == endedSlice || seen == most {
					all = false
					return false
				}
				n++
				seen++
				to = append(to[:0:0], k...)
				var a *Approval
				if a, bad = decodeApproval(value); bad != nil || a.CreatedAt.Before(oldest) {
					return false
				}
				if (a.Status == Approved || a.Status == Refused || a.Status == Expired) && !a.AnsweredAt.Before(since) {
					fn(a)
				}
				return true
			})
			return errors.Join(err, bad)
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
