package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// seals: the hook sees all of a commit, once per tenant it touched, and what
// it writes is part of it.
func seals(t *testing.T, open Opener) {
	s := open(t, t.TempDir(), store.Options{Seal: func(tx store.Tx) error {
		n := 0
		if err := tx.Scan("a", nil, nil, false, func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
			return err
		}
		expect.Is(t, tx.Counter("n"), int64(n), "seal sees", n, "records, counter")
		tx.Add("seals", 1)
		return put(tx, "sealed", "n", fmt.Sprint(n))
	}})
	defer closeStore(t, s)
	create(t, s, tenant)
	create(t, s, "t_two")
	create(t, s, "t_idle")
	var wg sync.WaitGroup
	for c := range 20 {
		wg.Go(func() {
			for i := range 10 {
				err := s.Update(ctx, []string{tenant, "t_two"}[c%2], func(tx store.Tx) error {
					tx.Add("n", 1)
					return put(tx, "a", fmt.Sprintf("%d-%d", c, i), "x")
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range []string{tenant, "t_two"} {
		view(t, s, id, func(tx store.Tx) error {
			want(t, tx, "sealed", "n", "100")
			if n := tx.Counter("seals"); n < 1 || n > 100 {
				t.Errorf("%d seals", n)
			}
			return nil
		})
	}
	view(t, s, "t_idle", func(tx store.Tx) error { want(t, tx, "sealed", "n", nil); return nil })
	// An update that changes nothing is not a commit.
	before := int64(0)
	update(t, s, tenant, func(tx store.Tx) error { before = tx.Counter("seals"); return nil })
	update(t, s, tenant, func(tx store.Tx) error {
		expect.Is(t, tx.Counter("seals"), before, "an update without changes was sealed")
		return nil
	})
}

// failedSeal: nothing of the commit is left, and the next one is fine.
func failedSeal(t *testing.T, open Opener) {
	fail := false
	s := fresh(t, open, store.Options{Seal: func(tx store.Tx) error {
		if fail {
			_ = put(tx, "sealed", "k", "v")
			return errNo
		}
		return nil
	}})
	update(t, s, tenant, func(tx store.Tx) error { tx.Add("n", 1); return put(tx, "a", "k", "1") })
	fail = true
	err := s.Update(ctx, tenant, func(tx store.Tx) error {
		tx.OnCommit(func() { t.Error("hook of a failed commit") })
		tx.Add("n", 1)
		return put(tx, "a", "k", "2")
	})
	if !errors.Is(err, errNo) {
		t.Fatalf("update: %v", err)
	}
	fail = false
	for range 2 {
		update(t, s, tenant, func(tx store.Tx) error {
			want(t, tx, "a", "k", "1")
			want(t, tx, "sealed", "k", nil)
			expect.Is(t, tx.Counter("n"), 1, "counter is")
			return put(tx, "b", "k", "1")
		})
	}
}

// tenants are made once and listed in order.
func tenants(t *testing.T, open Opener) {
	s := open(t, t.TempDir(), store.Options{})
	defer closeStore(t, s)
	if got, err := s.Tenants(ctx); err != nil || len(got) != 0 {
		t.Errorf("tenants of a new store: %v, %v", got, err)
	}
	for _, id := range []string{"t_b", "t_a", "t_ab"} {
		create(t, s, id)
		expect.Err(t, s.CreateTenant(ctx, id), store.ErrTenantExists, "second", id)
	}
	for _, id := range []string{"", strings.Repeat("t", 200)} {
		expect.Fails(t, s.CreateTenant(ctx, id), "tenant", id)
	}
	if got, err := s.Tenants(ctx); err != nil || !slices.Equal(got, []string{"t_a", "t_ab", "t_b"}) {
		t.Errorf("tenants: %v, %v", got, err)
	}
	none := func(store.Tx) error { t.Error("fn ran without its tenant"); return nil }
	expect.Err(t, s.Update(ctx, "t_none", none), store.ErrNoTenant, "update")
	expect.Err(t, s.View(ctx, "t_none", none), store.ErrNoTenant, "view")
}

// isolation: whatever a transaction names, it stays inside its tenant, also
// while tenants share commits.
func isolation(t *testing.T, open Opener) {
	s := open(t, t.TempDir(), store.Options{})
	defer closeStore(t, s)
	ids := []string{"t_a", "t_ab", "t_b", "t_a/x", "t_a\x00", "swarmdeck", "tenant:t_a", "_counters"}
	for _, id := range ids {
		create(t, s, id)
	}
	names := []store.Bucket{"x", "t_a", "tenant:t_a", "tenant:t_b", "../t_b", "t_b/x", "\x00", "swarmdeck", "b"}
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			for i := range 10 {
				update := func(tx store.Tx) error {
					expect.Is(t, tx.Tenant(), id, "transaction of")
					tx.Add("n", 1)
					for _, b := range names {
						for _, key := range []string{"k", "tenant:t_b", "t_b/k", fmt.Sprint(i)} {
							if old, err := tx.Get(b, []byte(key)); err != nil || old != nil && string(old) != id {
								t.Errorf("%q sees %q in %s/%s (%v)", id, old, b, key, err)
							}
							if err := put(tx, b, key, id); err != nil {
								return err
							}
						}
					}
					return nil
				}
				if err := s.Update(ctx, id, update); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		view(t, s, id, func(tx store.Tx) error {
			expect.Is(t, tx.Counter("n"), 10, id, "counts")
			for _, b := range names {
				for _, reverse := range []bool{false, true} {
					n := 0
					if err := tx.Scan(b, nil, nil, reverse, func(k, v []byte) (bool, error) {
						expect.Is(t, string(v), id, "sees", v, "in", b, "/", k)
						n++
						return true, nil
					}); err != nil {
						return err
					}
					expect.Is(t, n, 13, id, "has", "records in", b)
				}
			}
			return nil
		})
	}
	if got, err := s.Tenants(ctx); err != nil || len(got) != len(ids) {
		t.Errorf("tenants: %q, %v", got, err)
	}
}

// cancelled: an ended context runs nothing.
func cancelled(t *testing.T, open Opener) {
	s := fresh(t, open, store.Options{})
	dead, cancel := context.WithCancel(ctx)
	cancel()
	none := func(store.Tx) error { t.Error("fn ran"); return nil }
	expect.Err(t, s.Update(dead, tenant, none), context.Canceled, "update")
	expect.Err(t, s.View(dead, tenant, none), context.Canceled, "view")
	// One that ends while the call waits for the writer.
	hold, held := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		update(t, s, tenant, func(tx store.Tx) error { close(held); <-hold; return nil })
	})
	<-held
	waiting, stop := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() { result <- s.Update(waiting, tenant, none) }()
	stop()
	expect.Err(t, <-result, context.Canceled, "waiting update")
	close(hold)
	wg.Wait()
	update(t, s, tenant, func(tx store.Tx) error { return put(tx, "a", "k", "v") })
}

// closed: what was accepted is there, later calls say so.
func closed(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := open(t, dir, store.Options{})
	create(t, s, tenant)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var good []string
	for c := range 20 {
		wg.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%d-%d", c, i)
				err := s.Update(ctx, tenant, func(tx store.Tx) error { return put(tx, "a", key, "x") })
				if err != nil {
					expect.Err(t, err, store.ErrClosed, "update")
					return
				}
				mu.Lock()
				good = append(good, key)
				enough := len(good) == 200
				mu.Unlock()
				if enough {
					closeStore(t, s)
				}
			}
		})
	}
	wg.Wait()
	closeStore(t, s)
	expect.Err(t, s.View(ctx, tenant, func(store.Tx) error { return nil }), store.ErrClosed, "view")
	_, err := s.Tenants(ctx)
	expect.Err(t, err, store.ErrClosed, "tenants")
	expect.Err(t, s.CreateTenant(ctx, "t_late"), store.ErrClosed, "create")
	s = open(t, dir, store.Options{})
	defer closeStore(t, s)
	view(t, s, tenant, func(tx store.Tx) error {
		for _, key := range good {
			want(t, tx, "a", key, "x")
		}
		return nil
	})
}

// reopened: everything is as it was.
func reopened(t *testing.T, open Opener) {
	dir := t.TempDir()
	for round := range 5 {
		s := open(t, dir, store.Options{})
		if round == 0 {
			create(t, s, tenant)
		}
		update(t, s, tenant, func(tx store.Tx) error {
			for i := range round {
				want(t, tx, "a", fmt.Sprint(i), strings.Repeat("v", 100*i))
			}
			tx.Add("n", 1)
			return put(tx, "a", fmt.Sprint(round), strings.Repeat("v", 100*round))
		})
		view(t, s, tenant, func(tx store.Tx) error {
			expect.Is(t, tx.Counter("n"), int64(round+1), "counter", "in round", round)
			return nil
		})
		closeStore(t, s)
	}
}

// epochs rise with every opening.
func epochs(t *testing.T, open Opener) {
	dir := t.TempDir()
	var last uint64
	for range 3 {
		s := open(t, dir, store.Options{})
		if last == 0 {
			create(t, s, tenant)
		}
		update(t, s, tenant, func(tx store.Tx) error {
			if tx.Epoch() <= last {
				t.Errorf("epoch %d after %d", tx.Epoch(), last)
			}
			last = tx.Epoch()
			return nil
		})
		view(t, s, tenant, func(tx store.Tx) error {
			expect.Is(t, tx.Epoch(), last, "epoch")
			return nil
		})
		closeStore(t, s)
	}
}
