package audit_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// retire lets events leave up to one.
func (h *house) retire(upto uint64) {
	h.t.Helper()
	for last := uint64(0); ; {
		at := expect.Of(h.Retire(h.t.Context(), core.Self(acme, "retention"), upto, nil))(h.t)
		if at >= upto || at == last {
			return
		}
		last = at
	}
}

// issue gives the newest checkpoint out.
func (h *house) issue() []byte {
	h.t.Helper()
	note := h.checkpoint()
	expect.No(h.t, h.Issue(h.t.Context(), acme, note))
	return note
}

func (h *house) count() (n uint64) {
	h.t.Helper()
	c, err := audit.ParseCheckpoint(h.checkpoint())
	expect.Must(h.t, err == nil || errors.Is(err, audit.ErrUnsigned), "%v", err)
	return c.Size
}

// eachIssued visits the issued checkpoints up to a size, and fails if there are none.
func (h *house) eachIssued(upto uint64, visit func(size uint64, root []byte)) {
	h.t.Helper()
	roots := map[uint64][]byte{}
	if err := h.db.View(h.t.Context(), acme, func(tx store.Tx) error {
		return tx.Scan("audit_issued", nil, binary.BigEndian.AppendUint64(nil, upto+1), false, func(k, root []byte) (bool, error) {
			roots[binary.BigEndian.Uint64(k)] = bytes.Clone(root)
			return true, nil
		})
	}); err != nil || len(roots) == 0 {
		h.t.Fatal(len(roots), err)
	}
	for size, root := range roots {
		visit(size, root)
	}
}

func (h *house) healthy(saved ...[]byte) {
	h.t.Helper()
	for _, s := range append(saved, nil) {
		r := h.verify(s)
		expect.Must(h.t, r.OK, "%v", r.Problems)
	}
	d := h.deltas()
	expect.Must(h.t, len(d) == 0, "%v", d)
}

func (h *house) deltas() []audit.Delta {
	h.t.Helper()
	return expect.Of(h.Reconcile(h.t.Context(), acme))(h.t)
}

// drop removes things in one event.
func drop(t *testing.T, h *house, ids ...string) {
	t.Helper()
	err := h.Update(t.Context(), alice, func(tx *audit.Tx) error {
		if _, err := tx.Record(audit.Entry{Type: "retention.pruned", Subject: "thing", ID: ids[0]}); err != nil {
			return err
		}
		for _, id := range ids {
			tx.Gone("thing", id)
			if err := tx.Delete("thing", []byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
	expect.No(t, err)
}

func TestALogThatEventsLeftStillProvesTheRest(t *testing.T) {
	for seed := range uint64(2) {
		h := newHouse(t)
		rnd := rand.New(rand.NewPCG(seed, 1))
		var saved [][]byte
		there := map[string]bool{}
		for i := range 60 {
			for range rnd.IntN(30) {
				id := fmt.Sprintf("t %d", rnd.IntN(200))
				set(t, h, id, fmt.Sprintf(`{"s":%d}`, i))
				there[id] = true
			}
			switch rnd.IntN(6) {
			case 0:
				if h.count() > 0 {
					saved = append(saved, h.issue())
				}
			case 1:
				h.rotate()
			case 2:
				ids := slices.Collect(func(yield func(string) bool) {
					for id := range there {
						if delete(there, id); !yield(id) {
							return
						}
					}
				})
				if len(ids) > 1 {
					for _, id := range ids[len(ids)/2:] {
						there[id] = true
					}
					drop(t, h, ids[:len(ids)/2]...)
				}
			case 3, 4:
				set(t, h, "last", `{}`)
				h.retire(uint64(rnd.Int64N(int64(h.count()))))
			case 5:
				h.close()
				h.open()
			}
		}
		h.healthy(saved...)
		left := h.verify(nil).Sealed
		expect.Must(t, left != 0, "nothing left the log")
		h.eachIssued(left, func(size uint64, root []byte) {
			key := binary.BigEndian.AppendUint64(nil, size)
			h.tamper(func(tx store.Tx) error { return tx.Delete("audit_issued", key) })
			expect.True(t, !h.verify(nil).OK, "of %d that left, the checkpoint of %d that was issued is gone unseen", left, size)
			h.tamper(func(tx store.Tx) error { return tx.Put("audit_issued", key, root) })
		})
		for seq := left + 1; seq <= h.count(); seq += 7 {
			proof := expect.Of(h.Prove(t.Context(), acme, core.NewID(core.EventPrefix, acme, seq)))(t)
			expect.Of(audit.CheckProof(proof, h.sealer.Verifier(acme)))(t)
		}
		page, err := h.List(t.Context(), acme, core.Filter{Since: newClock().now.Add(-time.Hour)})
		expect.Must(t, err == nil && page.Info.Total == int(h.count()-left), "%v %v", page.Info.Total, err)
		_, err = h.Get(t.Context(), acme, core.NewID(core.EventPrefix, acme, left))
		expect.Must(t, errors.Is(err, core.Kind(core.NotFound)) || err == nil, "%v", err)
	}
}

func TestNoEditHidesBehindWhatLeftTheLog(t *testing.T) {
	h := newHouse(t)
	for i := range 40 {
		set(t, h, fmt.Sprint("thing", i%20), `{"s":"old"}`)
	}
	saved := h.issue()
	set(t, h, "thing3", `{"s":"new"}`)
	drop(t, h, "thing4", "thing5")
	h.retire(30)
	h.issue()
	h.retire(35)
	h.healthy(saved)
	rows, left := h.dump(), h.verify(nil).Sealed
	expect.Must(t, len(rows) >= 40, "only %v rows", len(rows))
	h.close()
	h.db = openStore(t, h.data, store.Options{}) // as somebody with the file would
	h.Ledger = audit.New(h.db, audit.Options{Clock: newClock(), Trusted: h.trusted})
	h.Register(things{})
	edit := func(fn func(tx store.Tx) error) {
		t.Helper()
		expect.No(t, h.db.Update(t.Context(), acme, fn))
	}
	for _, r := range rows {
		other := append(bytes.Clone(r.key), 'x')
		for name, forge := range map[string]func(tx store.Tx) error{
			"gone": func(tx store.Tx) error { return tx.Delete(r.bucket, r.key) },
			"another": func(tx store.Tx) error {
				return tx.Put(r.bucket, r.key, append([]byte{r.value[0] ^ 1}, r.value[1:]...))
			},
			"added": func(tx store.Tx) error { return tx.Put(r.bucket, other, r.value) },
		} {
			if name == "gone" && r.bucket == "audit_issued" && binary.BigEndian.Uint64(r.key) > left {
				continue // the checkpoint's events are there
			}
			edit(forge)
			report, err := h.Verify(t.Context(), acme, saved)
			deltas, failed := h.Reconcile(t.Context(), acme)
			if err == nil && report.OK && len(deltas) == 0 && failed == nil {
				t.Errorf("%s: %s %q unseen", name, r.bucket, r.key)
			}
			edit(func(tx store.Tx) error {
				return errors.Join(tx.Delete(r.bucket, other), tx.Put(r.bucket, r.key, r.value))
			})
		}
	}
	h.healthy(saved)
}

type stored struct {
	bucket     store.Bucket
	key, value []byte
}

// dump is every row of the tenant.
func (h *house) dump() (all []stored) {
	h.t.Helper()
	err := h.db.View(h.t.Context(), acme, func(tx store.Tx) error {
		buckets, err := tx.(store.Inventory).Buckets()
		for _, b := range buckets {
			err = errors.Join(err, tx.Scan(b, nil, nil, false, func(key, value []byte) (bool, error) {
				all = append(all, stored{b, bytes.Clone(key), bytes.Clone(value)})
				return true, nil
			}))
		}
		return err
	})
	expect.No(h.t, err)
	return all
}
