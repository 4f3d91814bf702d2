package audit

import (
	"context"
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
		seen := 0
		return tx.Scan(Events, key(seq+1), nil, false, func(_, data []byte) (bool, error) {
			h, err := headOf(data)
			if err != nil {
				return false, err
			}
			if want(h.typ) {
				e, err := decode(data)
				if err != nil {
					return false, err
				}
				found = append(found, e)
			}
			upto = h.seq
			seen++
			return seen < slice && len(found) < n, nil
		})
	})
	if err != nil {
		return nil, seq, fmt.Errorf("read audit events after %d: %w", seq, err)
	}
	return found, upto, nil
}
