package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

var errNo = errors.New("no")

// failures: nothing of a failed update is left.
func failures(t *testing.T, open Opener) {
	s := fresh(t, open, store.Options{})
	update(t, s, tenant, func(tx store.Tx) error { return put(tx, "a", "old", "1") })
	called := false
	err := s.Update(ctx, tenant, func(tx store.Tx) error {
		tx.OnCommit(func() { called = true })
		tx.Add("n", 5)
		if err := errors.Join(put(tx, "a", "new", "1"), put(tx, "a", "old", "2"), tx.Delete("a", []byte("old"))); err != nil {
			return err
		}
		want(t, tx, "a", "old", nil)
		want(t, tx, "a", "new", "1")
		return errNo
	})
	if !errors.Is(err, errNo) {
		t.Fatalf("update: %v", err)
	}
	check := func(tx store.Tx) error {
		want(t, tx, "a", "old", "1")
		want(t, tx, "a", "new", nil)
		expect.Is(t, tx.Counter("n"), 0, "counter is")
		return nil
	}
	view(t, s, tenant, check)
	update(t, s, tenant, check)
	if called {
		t.Error("the failed update's hook ran")
	}
}

// neighbours: failing updates never spoil those committed with them.
func neighbours(t *testing.T, open Opener) {
	s := fresh(t, open, store.Options{})
	const callers, each = 40, 25
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				err := s.Update(ctx, tenant, func(tx store.Tx) error {
					tx.Add("n", 1)
					if err := put(tx, "a", fmt.Sprintf("%d-%d", c, i), "x"); err != nil {
						return err
					}
					switch {
					case c%4 == 1:
						return errNo
					case c%4 == 2:
						panic("oops")
					}
					return nil
				})
				if bad := c%4 == 1 || c%4 == 2; (err != nil) != bad {
					t.Errorf("caller %d: %v", c, err)
				}
			}
		})
	}
	wg.Wait()
	view(t, s, tenant, func(tx store.Tx) error {
		n := 0
		err := tx.Scan("a", nil, nil, false, func(_, _ []byte) (bool, error) { n++; return true, nil })
		if want := callers / 2 * each; n != want || tx.Counter("n") != int64(want) {
			t.Errorf("%d records, counter %d, want %d", n, tx.Counter("n"), want)
		}
		return err
	})
}

// panics become the caller's error and leave nothing.
func panics(t *testing.T, open Opener) {
	s := fresh(t, open, store.Options{})
	for name, do := range map[string]func(func(store.Tx) error) error{
		"update": func(fn func(store.Tx) error) error { return s.Update(ctx, tenant, fn) },
		"view":   func(fn func(store.Tx) error) error { return s.View(ctx, tenant, fn) },
	} {
		err := do(func(tx store.Tx) error {
			if name == "update" {
				_ = put(tx, "a", "k", "v")
			}
			panic("the reason")
		})
		if err == nil || !strings.Contains(err.Error(), "the reason") {
			t.Errorf("%s: %v", name, err)
		}
	}
	update(t, s, tenant, func(tx store.Tx) error {
		want(t, tx, "a", "k", nil)
		return put(tx, "a", "k", "v")
	})
}

// writingInScan: a scan's fn that writes fails the update.
func writingInScan(t *testing.T, open Opener) {
	s := fresh(t, open, store.Options{})
	update(t, s, tenant, func(tx store.Tx) error { return put(tx, "a", "k", "v") })
	for name, write := range map[string]func(store.Tx){
		"put":    func(tx store.Tx) { _ = put(tx, "a", "x", "v") },
		"delete": func(tx store.Tx) { _ = tx.Delete("a", []byte("k")) },
		"add":    func(tx store.Tx) { tx.Add("n", 1) },
	} {
		if err := s.Update(ctx, tenant, func(tx store.Tx) error {
			return tx.Scan("a", nil, nil, false, func(_, _ []byte) (bool, error) { write(tx); return true, nil })
		}); err == nil {
			t.Errorf("%s inside a scan: accepted", name)
		}
	}
	// Reading inside a scan is fine, and so is another scan.
	update(t, s, tenant, func(tx store.Tx) error {
		n := 0
		err := tx.Scan("a", nil, nil, false, func(k, _ []byte) (bool, error) {
			want(t, tx, "a", string(k), "v")
			err := tx.Scan("a", nil, nil, true, func(_, _ []byte) (bool, error) { n++; return true, nil })
			return err == nil, nil
		})
		expect.Is(t, n, 1, "the inner scan saw")
		return errors.Join(err, put(tx, "a", "after", "v"))
	})
}

// afterTheEnd: a transaction kept beyond its fn does nothing.
func afterTheEnd(t *testing.T, open Opener) {
	s := fresh(t, open, store.Options{})
	var kept store.Tx
	update(t, s, tenant, func(tx store.Tx) error { kept = tx; return put(tx, "a", "k", "v") })
	for range 2 {
		_, getErr := kept.Get("a", []byte("k"))
		scanErr := kept.Scan("a", nil, nil, false, func(_, _ []byte) (bool, error) { return true, nil })
		if getErr == nil || scanErr == nil || put(kept, "a", "k", "late") == nil || kept.Delete("a", []byte("k")) == nil {
			t.Error("a call on an ended transaction succeeded")
		}
		if kept.Add("n", 1) != 0 || kept.Counter("n") != 0 {
			t.Error("an ended transaction counts")
		}
		view(t, s, tenant, func(tx store.Tx) error {
			want(t, tx, "a", "k", "v")
			kept = tx
			return nil
		})
	}
}

// allocatedReads look for keys that are made in memory of the transaction, which the next
// one makes others in: what a store remembers of a read must not be that memory.
func allocatedReads(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := open(t, dir, store.Options{})
	create(t, s, tenant)
	key := func(tx store.Tx, n byte) []byte { return append(tx.Alloc(2), 'k', n) }
	update(t, s, tenant, func(tx store.Tx) error {
		for n := range byte(10) {
			if err := tx.Put("a", key(tx, n), []byte{n}); err != nil {
				return err
			}
		}
		return nil
	})
	closeStore(t, s)
	s = open(t, dir, store.Options{})
	t.Cleanup(func() { closeStore(t, s) })
	for _, n := range []byte{5, 3, 7, 1, 9, 0} {
		update(t, s, tenant, func(tx store.Tx) error {
			got, err := tx.Get("a", key(tx, n))
			if err != nil || !bytes.Equal(got, []byte{n}) {
				t.Errorf("key %d: %v, %v", n, got, err)
			}
			from, seen := key(tx, n), 0
			err = tx.Scan("a", from, key(tx, n+1), false, func(_, _ []byte) (bool, error) { seen++; return true, nil })
			if err != nil || seen != 1 {
				t.Errorf("from %d on: %d keys, %v", n, seen, err)
			}
			return tx.Put("b", key(tx, n), []byte{n})
		})
	}
}

// allocated memory is fresh, apart from all other, and good for keys and values
// of any size; what was put from it outlives it.
func allocated(t *testing.T, open Opener) {
	s := fresh(t, open, store.Options{})
	sizes := []int{0, 1, 100, 20 << 10, 100 << 10}
	fill := func(room []byte, n int, c byte) []byte {
		if len(room) != 0 || cap(room) < n {
			t.Fatalf("asked for %d bytes: %d of %d", n, len(room), cap(room))
		}
		return append(room, bytes.Repeat([]byte{c}, n)...)
	}
	for round := range byte(3) {
		update(t, s, tenant, func(tx store.Tx) error {
			for i, n := range sizes {
				key := append(tx.Alloc(2), 'k', byte(i), round)
				if err := tx.Put("a", key, fill(tx.Alloc(n), n, 'a'+round)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	view(t, s, tenant, func(tx store.Tx) error {
		for round := range byte(3) {
			for i, n := range sizes {
				want(t, tx, "a", string([]byte{'k', byte(i), round}), string(fill(tx.Alloc(n), n, 'a'+round)))
			}
		}
		return nil
	})
}

// views see one moment and can't write.
func views(t *testing.T, open Opener) {
	s := fresh(t, open, store.Options{})
	for name, write := range map[string]func(store.Tx){
		"put":    func(tx store.Tx) { _ = put(tx, "a", "x", "v") },
		"delete": func(tx store.Tx) { _ = tx.Delete("a", []byte("k")) },
		"add":    func(tx store.Tx) { tx.Add("n", 1) },
	} {
		expect.Err(t, s.View(ctx, tenant, func(tx store.Tx) error { write(tx); return nil }), store.ErrReadOnly, name, "in a view")
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := s.Update(ctx, tenant, func(tx store.Tx) error {
					n := tx.Add("n", 1)
					v := fmt.Sprint(n)
					return errors.Join(put(tx, "a", "x", v), put(tx, "b", "y", v))
				}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 300 {
		view(t, s, tenant, func(tx store.Tx) error {
			x, err := tx.Get("a", []byte("x"))
			if err != nil || x == nil {
				return err
			}
			want(t, tx, "b", "y", string(x))
			if n := tx.Counter("n"); fmt.Sprint(n) != string(x) {
				t.Errorf("counter %d beside %s", n, x)
			}
			return nil
		})
	}
	close(stop)
	wg.Wait()
}

// counters count through successes, failures and reopening.
func counters(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := open(t, dir, store.Options{})
	create(t, s, tenant)
	var total int64
	for i := range int64(60) {
		fail := i%3 == 2
		_ = s.Update(ctx, tenant, func(tx store.Tx) error {
			expect.Is(t, tx.Add("n", i), total+i, "add")
			if got := tx.Add("n", -1); got != total+i-1 || tx.Counter("n") != got {
				t.Errorf("second add: %d", got)
			}
			tx.Add("zero", 1)
			tx.Add("zero", -1)
			if fail {
				return errNo
			}
			return nil
		})
		if !fail {
			total += i - 1
		}
		view(t, s, tenant, func(tx store.Tx) error {
			expect.Is(t, tx.Counter("n"), total, "view")
			return nil
		})
		if i%20 == 19 {
			closeStore(t, s)
			s = open(t, dir, store.Options{})
		}
	}
	closeStore(t, s)
}

// hooks run in commit order, before Update returns, only after success.
func hooks(t *testing.T, open Opener) {
	s := fresh(t, open, store.Options{})
	var last int64 // only the hooks touch it, one at a time
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range 30 {
				ran := false
				err := s.Update(ctx, tenant, func(tx store.Tx) error {
					n := tx.Add("n", 1)
					tx.OnCommit(func() {
						expect.Is(t, tx.Tenant(), tenant, "hook of a transaction of")
						expect.Is(t, n, last+1, "hook of", "after", last)
						last, ran = n, true
					})
					if i%7 == 6 {
						return errNo
					}
					return nil
				})
				expect.Is(t, ran, (err == nil), "hook ran", "update", err)
			}
		})
	}
	wg.Wait()
}
