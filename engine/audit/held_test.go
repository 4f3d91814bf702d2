package audit_test

import (
	"errors"
	"sync"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/expect"
)

func TestHeldCountersAreThoseOfTheNewestCommit(t *testing.T) {
	h := audit.New(newStore(t), audit.Options{})
	h.Hold("", "red", "green")
	add := func(red, green int64) error {
		return h.Update(t.Context(), alice, func(tx *audit.Tx) error {
			tx.Add("red", red)
			tx.Derived().Add("green", green)
			if green < 0 {
				return errors.New("no")
			}
			_, err := tx.Record(audit.Entry{Type: "thing.counted", Subject: "thing", ID: "1"})
			return err
		})
	}
	check := func(what string, red, green int64) audit.Counts {
		t.Helper()
		c, err := h.Counts(t.Context(), acme)
		expect.True(t, err == nil && c.Counter("red") == red && c.Counter("green") == green, "%s: %v, %v", what, c, err)
		return c
	}
	_ = add(2, 1)
	before := check("first asked for", 2, 1)
	_ = add(1, 1)
	check("after a commit", 3, 2)
	expect.Fails(t, add(10, -1), "no error")
	last := check("after a change that failed", 3, 2)
	expect.True(t, before.Counter("red") == 2 && last.Events() == before.Events()+1, "%v, before %v", last, before)
	expect.No(t, h.Update(t.Context(), alice, func(tx *audit.Tx) error {
		h.Hold(acme, "blue")
		tx.Add("blue", 5)
		_, err := tx.Record(audit.Entry{Type: "thing.counted", Subject: "thing", ID: "1"})
		return err
	}))
	c := check("held later", 3, 2)
	expect.True(t, c.Counter("blue") == 5, "blue: %v", c)
	c, err := h.Counts(t.Context(), other)
	expect.True(t, err == nil && len(c) == 3, "another tenant holds %v, %v", c, err)
	h.Release(acme, "blue")
	c = check("released", 3, 2)
	expect.True(t, len(c) == 3, "held: %v", c)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				expect.Is(t, add(1, 0), nil)
				_, err := h.Counts(t.Context(), acme)
				expect.True(t, err == nil, "%v", err)
			}
		})
	}
	all.Wait()
	check("after a race", 163, 2)
}
