package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

// sizes are buckets and how many rows each has; those of wide are large.
func sizes() map[store.Bucket]int {
	return map[store.Bucket]int{"few": 3, "some": 150, "many": 1000, "wide": 30, "none": 0}
}

// fillBuckets makes a tenant with them, and returns the keys of each.
func fillBuckets(t *testing.T, dsn string) map[store.Bucket][]string {
	t.Helper()
	db := open(t, dsn, postgres.Options{})
	defer closed(t, db)
	all := map[store.Bucket][]string{}
	expect.No(t, errors.Join(db.CreateTenant(t.Context(), acme), db.Update(t.Context(), acme, func(tx store.Tx) error {
		for name, n := range sizes() {
			for i := range n {
				key, value := fmt.Sprintf("%04d", i), make([]byte, 100)
				if name == "wide" {
					value = make([]byte, 20<<10)
				}
				all[name] = append(all[name], key)
				if err := tx.Put(name, []byte(key), value); err != nil {
					return err
				}
			}
		}
		return nil
	})))
	return all
}

// scanned is the first keys of a bucket or, backwards, the last ones, in order.
func scanned(t *testing.T, tx store.Tx, name store.Bucket, most int, back bool) (keys []string) {
	t.Helper()
	if err := tx.Scan(name, nil, nil, back, func(key, _ []byte) (bool, error) {
		keys = append(keys, string(key))
		return len(keys) < most, nil
	}); err != nil {
		t.Error(err)
	}
	if back {
		slices.Reverse(keys)
	}
	return keys
}

func TestWhatAnEngineAsksForFirstIsReadWhenATenantIsTaken(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database(t, "ahead")
	all := fillBuckets(t, dsn)
	r, through := newRelay(t, dsn)
	db := open(t, through, postgres.Options{Lease: -1}) // nobody renews
	defer closed(t, db)
	expect.No(t, db.Take(t.Context(), acme))
	p := db.Part(acme)
	asked := r.asked.Load()
	expect.Same(t, expect.Of(p.Here(t.Context()))(t), []string{acme}, "here are")
	expect.No(t, p.View(t.Context(), acme, func(tx store.Tx) error {
		for _, name := range []store.Bucket{"few", "some", "none"} {
			expect.Same(t, scanned(t, tx, name, 1000, false), all[name], name)
		}
		for _, name := range []store.Bucket{"many", "wide"} {
			got := scanned(t, tx, name, 1, false)
			expect.True(t, got[0] == "0000", "first of %s: %v", name, got)
			expect.Same(t, scanned(t, tx, name, 3, true), all[name][len(all[name])-3:], "last of", name)
			if got, err := tx.Get(name, []byte("9")); err != nil || got != nil {
				t.Errorf("behind the last of %s: %q, %v", name, got, err)
			}
		}
		return nil
	}))
	expect.Is(t, r.asked.Load()-asked, 0, "bytes were said to the server")
	expect.No(t, p.View(t.Context(), acme, func(tx store.Tx) error {
		for name := range sizes() {
			got := scanned(t, tx, name, 10_000, false)
			expect.True(t, slices.Equal(got, all[name]), "%s has %d rows, want %d", name, len(got), len(all[name]))
		}
		return nil
	}))
	expect.True(t, r.asked.Load() != asked, "all is in memory: the bounds were not tried")
}

func TestABucketThatMemoryForgetsIsNotTakenForEmpty(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database(t, "forgotten")
	all := fillBuckets(t, dsn)
	db := open(t, dsn, postgres.Options{Memory: 1})
	defer closed(t, db)
	expect.No(t, db.Update(t.Context(), acme, func(tx store.Tx) error {
		for range 2 {
			for name := range sizes() {
				got := scanned(t, tx, name, 10_000, false)
				expect.True(t, slices.Equal(got, all[name]), "%s has %d rows, want %d", name, len(got), len(all[name]))
			}
		}
		return tx.Put("many", []byte("1000"), nil)
	}))
	expect.No(t, db.View(t.Context(), acme, func(tx store.Tx) error {
		got := scanned(t, tx, "many", 10_000, false)
		expect.True(t, len(got) == 1001, "%d rows, want one more than 1000", len(got))
		return nil
	}))
}
