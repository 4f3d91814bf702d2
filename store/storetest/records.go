package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// model is what a bucket should hold.
type model map[string]string

func (m model) clone() model {
	out := model{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// between lists the keys in [from, to) in the order of a scan.
func (m model) between(from, to []byte, reverse bool) []string {
	var keys []string
	for k := range m {
		if (from == nil || k >= string(from)) && (to == nil || k < string(to)) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	if reverse {
		slices.Reverse(keys)
	}
	return keys
}

var buckets = []store.Bucket{"a", "b"}

// records compares random transactions with maps.
func records(t *testing.T, open Opener) {
	random(t, open, 400, func(r *rand.Rand) int { return r.IntN(12) }, 60)
}

// largeUpdates does the same with hundreds of writes per transaction.
func largeUpdates(t *testing.T, open Opener) {
	random(t, open, 25, func(r *rand.Rand) int { return 20 + r.IntN(1500) }, 3000)
}

func random(t *testing.T, open Opener, rounds int, writes func(*rand.Rand) int, keys int) {
	s := fresh(t, open, store.Options{})
	r := rand.New(rand.NewPCG(1, 2))
	state := map[store.Bucket]model{"a": {}, "b": {}}
	for round := range rounds {
		next := map[store.Bucket]model{"a": state["a"].clone(), "b": state["b"].clone()}
		fail := r.IntN(5) == 0
		err := s.Update(ctx, tenant, func(tx store.Tx) error {
			for range writes(r) {
				change(t, r, tx, next, keys)
				if r.IntN(10) == 0 {
					compare(t, r, tx, next, keys)
				}
			}
			compare(t, r, tx, next, keys)
			if fail {
				return fmt.Errorf("round %d fails", round)
			}
			return nil
		})
		if (err != nil) != fail {
			t.Fatalf("round %d: %v", round, err)
		}
		if !fail {
			state = next
		}
		view(t, s, tenant, func(tx store.Tx) error {
			for range 3 {
				compare(t, r, tx, state, keys)
			}
			return nil
		})
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

func randomKey(r *rand.Rand, keys int) []byte { return fmt.Appendf(nil, "k%05d", r.IntN(keys)) }

func change(t *testing.T, r *rand.Rand, tx store.Tx, next map[store.Bucket]model, keys int) {
	b, key := buckets[r.IntN(len(buckets))], randomKey(r, keys)
	if r.IntN(3) == 0 {
		expect.No(t, tx.Delete(b, key))
		delete(next[b], string(key))
		return
	}
	value := bytes.Repeat([]byte{byte('a' + r.IntN(26))}, r.IntN(300))
	expect.No(t, tx.Put(b, key, value))
	next[b][string(key)] = string(value)
}

// compare does a random read both ways.
func compare(t *testing.T, r *rand.Rand, tx store.Tx, state map[store.Bucket]model, keys int) {
	t.Helper()
	b := buckets[r.IntN(len(buckets))]
	key := string(randomKey(r, keys))
	if value, ok := state[b][key]; ok {
		want(t, tx, b, key, value)
	} else {
		want(t, tx, b, key, nil)
	}
	var from, to []byte
	if r.IntN(2) == 0 {
		from = randomKey(r, keys)
	}
	if r.IntN(2) == 0 {
		to = randomKey(r, keys)
	}
	most, reverse := 1+r.IntN(50), r.IntN(2) == 0
	want := state[b].between(from, to, reverse)
	var got []string
	err := tx.Scan(b, from, to, reverse, func(k, v []byte) (bool, error) {
		expect.Is(t, state[b][string(k)], string(v), "scan", b, "/", k, "is", v)
		got = append(got, string(k))
		return len(got) < most, nil
	})
	expect.No(t, err)
	expect.Same(t, got, want[:min(most, len(want))], "scan", b, "[", from, to, "reverse", reverse)
}

// emptied scans across ranges that the same commit has deleted.
func emptied(t *testing.T, open Opener) {
	// The hook looks after the deletions were applied, before the commit.
	scanned := func(tx store.Tx) error {
		for _, c := range []struct {
			from, to    string
			reverse     bool
			first, last string
			n           int
		}{
			{"", "", false, "0000", "0999", 300},
			{"", "", true, "0999", "0000", 300},
			{"0050", "0900", true, "0899", "0050", 150},
			{"0050", "0900", false, "0050", "0899", 150},
			{"0200", "0500", true, "", "", 0},
			{"0100", "", true, "0999", "0800", 200},
		} {
			var from, to []byte
			if c.from != "" {
				from = []byte(c.from)
			}
			if c.to != "" {
				to = []byte(c.to)
			}
			var keys []string
			if err := tx.Scan("a", from, to, c.reverse, func(k, _ []byte) (bool, error) {
				keys = append(keys, string(k))
				return true, nil
			}); err != nil {
				return err
			}
			if len(keys) != c.n {
				t.Errorf("scan %+v: %d keys", c, len(keys))
			} else if c.n > 0 && (keys[0] != c.first || keys[len(keys)-1] != c.last) {
				t.Errorf("scan %+v: from %s to %s", c, keys[0], keys[len(keys)-1])
			}
		}
		return nil
	}
	var seal func(store.Tx) error
	s := open(t, t.TempDir(), store.Options{Seal: func(tx store.Tx) error {
		if seal != nil {
			return seal(tx)
		}
		return nil
	}})
	defer closeStore(t, s)
	create(t, s, tenant)
	value := bytes.Repeat([]byte("x"), 200)
	update(t, s, tenant, func(tx store.Tx) error {
		for i := range 1000 {
			if err := tx.Put("a", fmt.Appendf(nil, "%04d", i), value); err != nil {
				return err
			}
		}
		return nil
	})
	seal = scanned
	update(t, s, tenant, func(tx store.Tx) error {
		for i := 100; i < 800; i++ {
			if err := tx.Delete("a", fmt.Appendf(nil, "%04d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	seal = nil
	view(t, s, tenant, scanned)
}

// limits checks the refusals of keys, names and sizes.
func limits(t *testing.T, open Opener) {
	s := fresh(t, open, store.Options{})
	key := []byte("k")
	update(t, s, tenant, func(tx store.Tx) error { tx.Add("n", 1); return nil }) // the store's bucket is there
	for name, fn := range map[string]func(store.Tx) error{
		"empty key":      func(tx store.Tx) error { return tx.Put("a", nil, key) },
		"long key":       func(tx store.Tx) error { return tx.Put("a", make([]byte, store.MaxKey+1), key) },
		"large value":    func(tx store.Tx) error { return tx.Put("a", key, make([]byte, store.MaxValue+1)) },
		"no bucket":      func(tx store.Tx) error { return tx.Put("", key, key) },
		"store's bucket": func(tx store.Tx) error { return tx.Put("_counters", key, key) },
		"read store's":   func(tx store.Tx) error { _, err := tx.Get("_counters", key); return err },
		"delete empty":   func(tx store.Tx) error { return tx.Delete("a", nil) },
		"empty counter":  func(tx store.Tx) error { tx.Add("", 1); return nil },
	} {
		expect.Fails(t, s.Update(ctx, tenant, fn), name)
		// A refusal stands even when it is ignored.
		if err := s.Update(ctx, tenant, func(tx store.Tx) error {
			_ = fn(tx)
			return put(tx, "a", "kept", "no")
		}); err == nil {
			t.Errorf("%s: ignored", name)
		}
	}
	long := bytes.Repeat([]byte("k"), store.MaxKey)
	big := bytes.Repeat([]byte("v"), 3<<20)
	update(t, s, tenant, func(tx store.Tx) error {
		if err := tx.Put("a", long, nil); err != nil {
			return err
		}
		return tx.Put("a", key, big)
	})
	view(t, s, tenant, func(tx store.Tx) error {
		want(t, tx, "a", "kept", nil)
		want(t, tx, "a", string(long), "")
		want(t, tx, "a", "k", string(big))
		want(t, tx, "never-written", "k", nil)
		return nil
	})
}
