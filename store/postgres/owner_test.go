package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

const acme = "t_acme"

func put(key, value string) func(store.Tx) error {
	return func(tx store.Tx) error {
		tx.Add("n", 1)
		return tx.Put("b", []byte(key), []byte(value))
	}
}

// keys are those of the bucket b, and the counter of puts.
func keys(t *testing.T, s store.Store) (keys []string, n int64) {
	t.Helper()
	expect.No(t, s.View(t.Context(), acme, func(tx store.Tx) error {
		n = tx.Counter("n")
		return tx.Scan("b", nil, nil, false, func(k, _ []byte) (bool, error) { keys = append(keys, string(k)); return true, nil })
	}))
	return keys, n
}

func closed(t *testing.T, s store.Store) {
	t.Helper()
	expect.No(t, s.Close())
}

func TestAnOwnerWhoWasReplacedCommitsNothing(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "fence")
	anyone := postgres.Options{Lease: -1} // nobody waits
	older, newer := open(t, dsn, anyone), open(t, dsn, anyone)
	defer closed(t, newer)
	defer closed(t, older)
	expect.No(t, older.CreateTenant(t.Context(), acme))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var good []string
	for c := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("older-%d-%04d", c, i)
				if err := older.Update(t.Context(), acme, put(key, "v")); err != nil {
					expect.Err(t, err, store.ErrFenced, "older")
					return
				}
				mu.Lock()
				good = append(good, key)
				mu.Unlock()
			}
		})
	}
	expect.Await(t, "100 commits", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(good) > 100
	})
	expect.No(t, newer.Update(t.Context(), acme, put("newer", "v")))
	wg.Wait()
	have, n := keys(t, newer)
	expect.True(t, len(have) == len(good)+1 && n == int64(len(have)),
		"%d records, counter %d; acknowledged %d and one of the newer owner", len(have), n, len(good))
	expect.Err(t, older.View(t.Context(), acme, func(store.Tx) error { return nil }), store.ErrFenced, "view of the older owner")
}

func TestALeaseKeepsOthersAwayUntilItIsGivenUp(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "lease")
	first, second := open(t, dsn, postgres.Options{Engine: "first"}), open(t, dsn, postgres.Options{})
	defer closed(t, second)
	expect.No(t, first.CreateTenant(t.Context(), acme))
	expect.No(t, first.Update(t.Context(), acme, put("k", "v")))
	expect.Err(t, second.Update(t.Context(), acme, put("l", "v")), store.ErrLocked, "while the first has it")
	reader := open(t, dsn, postgres.Options{Options: store.Options{ReadOnly: true}})
	defer closed(t, reader)
	have, n := keys(t, reader)
	expect.True(t, len(have) == 1 && n == 1, "a reader sees %q, counter %d", have, n)
	expect.Err(t, reader.Update(t.Context(), acme, put("l", "v")), store.ErrReadOnly, "a reader writes")
	closed(t, first)
	expect.No(t, second.Update(t.Context(), acme, put("l", "v")))
}

func TestALeaseIsRenewedWhileItsOwnerIsThere(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "renew")
	const lease = 600 * time.Millisecond
	first, second := open(t, dsn, postgres.Options{Lease: lease}), open(t, dsn, postgres.Options{Lease: lease})
	defer closed(t, second)
	defer closed(t, first)
	expect.No(t, errors.Join(first.CreateTenant(t.Context(), acme), first.Update(t.Context(), acme, put("k", "v"))))
	locked := func() bool { return errors.Is(second.Update(t.Context(), acme, put("l", "v")), store.ErrLocked) }
	expect.True(t, locked(), "another takes it from its owner")
	expect.StillFor(t, 3*lease, locked, "it is its owner's")
}

func TestMigrationsRunOncePerTenant(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "migrate")
	with := func(n int) postgres.Options {
		var steps []store.Migration
		for i := range n {
			steps = append(steps, store.Migration{Name: fmt.Sprint("step ", i), Apply: func(tx store.Tx) error { tx.Add(fmt.Sprint("step", i), 1); return nil }})
		}
		return postgres.Options{Options: store.Options{Migrations: steps}}
	}
	for round, n := range []int{1, 3, 3, 2} {
		db := open(t, dsn, with(n))
		if round == 0 {
			expect.No(t, db.CreateTenant(t.Context(), acme))
		}
		err := db.View(t.Context(), acme, func(tx store.Tx) error {
			for i, want := range []int64{0, min(int64(round), 1), min(int64(round), 1)} {
				expect.Is(t, tx.Counter(fmt.Sprint("step", i)), want, "round", round, "step", i, "ran")
			}
			return nil
		})
		expect.True(t, (n == 2) == errors.Is(err, store.ErrUnusable) && (n == 2 || err == nil), "%d steps: %v", n, err)
		closed(t, db)
	}
}

func TestAnOwnerIsToldUntilWhenItsTenantsAreItsOwn(t *testing.T) {
	cluster := postgrestest.Start(t)
	held, lost := make(chan time.Time, 1000), make(chan error, 10)
	db := open(t, cluster.Database(t, "held"), postgres.Options{
		Lease: 3 * time.Second,
		Held:  func(_ string, until time.Time) { held <- until },
		Lost:  func(_ string, err error) { lost <- err },
	})
	defer closed(t, db)
	expect.No(t, errors.Join(db.CreateTenant(t.Context(), acme), db.Update(t.Context(), acme, put("k", "v"))))
	for range 3 {
		until := <-held
		left, err := time.ParseDuration(cluster.SQL(t, "held", "select extract(epoch from until - clock_timestamp()) from owner") + "s")
		if err != nil || time.Until(until) > left {
			t.Errorf("it may go on for %s, and has the tenant for %s, %v", time.Until(until), left, err)
		}
	}
	cluster.SQL(t, "held", "update owner set epoch = epoch + 1, engine = 'other'")
	expect.Err(t, <-lost, store.ErrFenced)
	for len(held) > 0 {
		<-held
	}
	select {
	case until := <-held:
		t.Errorf("held until %s by one who lost a tenant", until)
	case <-time.After(4 * time.Second):
	}
}
