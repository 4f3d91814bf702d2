package audit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// Readers walk the log in several read transactions: what is committed
// meanwhile must not look like damage, nor like a difference.
func TestReadersAreNotMisledByWriters(t *testing.T) {
	h := newHouse(t)
	h.record(1)
	saved := h.checkpoint()
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprint(w, "-", i%50)
				err := h.Update(t.Context(), alice, func(tx *audit.Tx) error {
					state := fmt.Appendf(nil, `{"n":%d}`, i)
					if err := tx.Put("thing", []byte(id), state); err != nil {
						return err
					}
					_, err := tx.Record(audit.Entry{Type: "thing.set", Subject: "thing", ID: id, State: core.Raw(state)})
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for round, seen := 0, false; round < 20 || !seen; round++ { // until the writers have been at it
		r := h.verify(saved)
		expect.Must(t, r.OK, "problems %q", r.Problems)
		seen = r.Events >= 20
		saved = h.checkpoint()
		d, err := h.Reconcile(t.Context(), acme)
		expect.True(t, err == nil && len(d) == 0, "deltas %v, %v", d, err)
		page := expect.Of(h.List(t.Context(), acme, core.Filter{Kind: "thing.*"}))(t)
		for i := 1; i < len(page.Items); i++ {
			expect.True(t, page.Items[i-1].Seq > page.Items[i].Seq, "page out of order: %d before %d", page.Items[i-1].Seq, page.Items[i].Seq)
		}
	}
	stop()
	writers.Wait()
	r := h.verify(saved)
	expect.True(t, r.OK, "%+v", r)
}
