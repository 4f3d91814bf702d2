package audit_test

import (
	"fmt"
	"slices"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// things is a kind of record as a service would keep it.
type things struct{}

func (things) Subject() string { return "thing" }

func (things) States(tx store.Tx, each func(string, any) error) error {
	var bad error
	err := tx.Scan("thing", nil, nil, false, func(k, v []byte) (bool, error) {
		bad = each(string(k), core.Raw(v))
		return bad == nil, nil
	})
	if err != nil {
		return err
	}
	return bad
}

func set(t *testing.T, h *house, id, state string) {
	t.Helper()
	err := h.Update(t.Context(), alice, func(tx *audit.Tx) error {
		e := audit.Entry{Type: "thing.set", Subject: "thing", ID: id, State: core.Raw(state)}
		if state == "" {
			e.State = audit.Gone
			if err := tx.Delete("thing", []byte(id)); err != nil {
				return err
			}
		} else if err := tx.Put("thing", []byte(id), []byte(state)); err != nil {
			return err
		}
		_, err := tx.Record(e)
		return err
	})
	expect.No(t, err)
}

func TestReconcile(t *testing.T) {
	put := func(id, state string) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.Put("thing", []byte(id), []byte(state)) }
	}
	for _, c := range []struct {
		name string
		do   func(store.Tx) error
		want []audit.Delta
	}{
		{"healthy", func(store.Tx) error { return nil }, nil},
		{"awkward state", put("odd", `{"s":"}","o":{"x":[{}]}}`), []audit.Delta{{"thing", "odd", "s", `"}\\\"{"`, `"}"`}}},
		{"spelt otherwise", put("a", `{ "n":2.0, "s":"\u0078" }`), nil},
		{"field changed", put("a", `{"s":"y","n":2}`), []audit.Delta{{"thing", "a", "s", `"x"`, `"y"`}}},
		{"field added", put("a", `{"s":"x","n":2,"z":null}`), []audit.Delta{{"thing", "a", "z", "", "null"}}},
		{"field gone, field changed", put("a", `{"n":3}`), []audit.Delta{{"thing", "a", "n", "2", "3"}, {"thing", "a", "s", `"x"`, ""}}},
		{"record gone", func(tx store.Tx) error { return tx.Delete("thing", []byte("a")) }, []audit.Delta{{"thing", "a", "", `{"s":"x","n":2}`, ""}}},
		{"record from nowhere", put("c", `{"n":1}`), []audit.Delta{{"thing", "c", "", "", `{"n":1}`}}},
		{"removed record is back", put("b", `{"n":9}`), []audit.Delta{{"thing", "b", "", "", `{"n":9}`}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			set(t, h, "a", `{"s":"x","n":1}`)
			set(t, h, "b", `{"n":9}`)
			set(t, h, "a", `{"s":"x","n":2}`)
			set(t, h, "b", "")
			set(t, h, "odd", `{"s":"}\\\"{","o":{"x":[{}]}}`)
			record(t, h.Ledger, entry("task.queued", "tk_1")) // of no kind given
			// An event without a state says nothing of the record.
			record(t, h.Ledger, audit.Entry{Type: "thing.seen", Subject: "thing", ID: "a"})
			h.tamper(c.do)
			got := expect.Of(h.Reconcile(t.Context(), acme))(t)
			rows := slices.DeleteFunc(slices.Clone(got), func(d audit.Delta) bool { return d.Field != "row" })
			expect.True(t, (c.name == "healthy") == (len(rows) == 0) && len(rows) <= 1, "rows that differ: %+v", rows)
			got = slices.DeleteFunc(got, func(d audit.Delta) bool { return d.Field == "row" })
			expect.Is(t, fmt.Sprint(got), fmt.Sprint(c.want), got, c.want)
		})
	}
}

func TestReconcileBoundsItsAnswer(t *testing.T) {
	h := newHouse(t)
	h.tamper(func(tx store.Tx) error {
		for i := range 10_050 {
			if err := tx.Put("thing", fmt.Appendf(nil, "%06d", i), []byte("{}")); err != nil {
				return err
			}
		}
		return nil
	})
	got, err := h.Reconcile(t.Context(), acme)
	if err != nil || len(got) != 10_001 || got[10_000].Log != "10100 more differences" {
		t.Errorf("%d deltas, last %+v, %v", len(got), got[len(got)-1], err)
	}
}
