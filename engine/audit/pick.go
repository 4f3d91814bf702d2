package audit

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/store"
)

// Pick returns up to n events after seq whose type is wanted, oldest first,
// and the seq up to which it looked: some thousands at most. Events of other
// types are not decoded. want must not keep the type.
func (l *Ledger) Pick(ctx context.Context, tenant string, seq uint64, n int, want func(eventType []byte) bool) (found []Event, upto uint64, err error) {
	upto = seq
	if n < 1 {
		return nil, upto, nil
	}
	err = l.st.View(ctx, tenant, func(tx store.Tx) error {
		var bad error
		seen := 0
		err := tx.Scan(Events, key(seq+1), nil, false, func(_, data []byte) bool {
			var h head
			if h, bad = headOf(data); bad != nil {
				return false
			}
			if want(h.typ) {
				var e Event
				if e, bad = decode(data); bad != nil {
					return false
				}
				found = append(found, e)
			}
			upto = h.seq
			seen++
			return seen < slice && len(found) < n
		})
		return errors.Join(err, bad)
	})
	if err != nil {
		return nil, seq, fmt.Errorf("read audit events after %d: %w", seq, err)
	}
	return found, upto, nil
}
