package dag

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// What is found at a time is what brute force finds, for any times.
func TestWhatHeldAtATimeIsFound(t *testing.T) {
	db := expect.Of(store.Open(filepath.Join(t.TempDir(), "x.db"), store.Options{}))(t)
	defer db.Close()
	expect.No(t, db.CreateTenant(t.Context(), "t_x1"))
	ledger := audit.New(db, audit.Options{})
	random := rand.New(rand.NewPCG(3, 4))
	type life struct{ from, to int64 } // to 0 is open
	var all []life
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	err := ledger.Append(t.Context(), core.Self("t_x1", "test"), func(tx *audit.Tx) error {
		w := &writer{reader: reader{tx}, tx: tx}
		for i := range 400 {
			l := life{from: random.Int64N(1000)}
			if random.IntN(4) > 0 {
				l.to = l.from + random.Int64N(1+random.Int64N(600))
			}
			all = append(all, l)
			s := span{what: 1, from: base.Add(time.Duration(l.from) * time.Microsecond), pos: uint64(i), id: fmt.Sprint(i)}
			if l.to == 0 {
				if err := w.opened(s, uint64(i), 0); err != nil {
					return err
				}
			} else if err := w.closed(s, base.Add(time.Duration(l.to)*time.Microsecond)); err != nil {
				return err
			}
		}
		return nil
	})
	expect.No(t, err)
	err = ledger.View(t.Context(), "t_x1", func(tx *audit.Tx) error {
		for at := int64(-1); at < 1700; at++ {
			var want, got []int
			for i, l := range all {
				if l.from <= at && (l.to == 0 || l.to > at) {
					want = append(want, i)
				}
			}
			err := reader{tx}.at(1, base.Add(time.Duration(at)*time.Microsecond), func(s span) (bool, error) {
				got = append(got, int(s.pos))
				i := int(s.pos)
				expect.True(t, s.id == fmt.Sprint(i) && s.from.Sub(base).Microseconds() == all[i].from, "span %d: %+v", i, s)
				return true, nil
			})
			slices.Sort(got)
			expect.Must(t, err == nil && slices.Equal(got, want), "at %d: %v, want %v (%v)", at, got, want, err)
		}
		return nil
	})
	expect.No(t, err)
}
