package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

// followed is a database whose commits somebody follows.
type followed struct {
	t    *testing.T
	db   *postgres.DB  // of who commits
	read *postgres.DB  // of who follows
	seen chan []string // the keys that the follower finds after each change
	n    int
}

func follow(t *testing.T, db *postgres.DB, dsn string) *followed {
	t.Helper()
	f := &followed{t: t, db: db, seen: make(chan []string, 1000)}
	f.read = open(t, dsn, postgres.Options{Options: store.Options{ReadOnly: true}})
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() {
		f.read.Follow(ctx, func(tenants []string) {
			expect.True(t, slices.Contains(tenants, acme), "told of %q", tenants)
			have, _ := keys(t, f.read)
			f.seen <- have
		})
	})
	t.Cleanup(func() { cancel(); over.Wait(); closed(t, f.read) })
	f.commit() // it has looked once, and listens where it can
	return f
}

// commit writes one key and returns how long the follower takes to see it.
func (f *followed) commit() time.Duration {
	f.t.Helper()
	f.n++
	key := fmt.Sprintf("k%03d", f.n)
	began := time.Now()
	expect.No(f.t, f.db.Update(f.t.Context(), acme, put(key, "v")))
	for end := time.After(2 * time.Minute); ; {
		select {
		case have := <-f.seen:
			if slices.Contains(have, key) {
				return time.Since(began)
			}
		case <-end:
			f.t.Fatalf("nothing is seen of %s", key)
		}
	}
}

// median of some commits.
func (f *followed) median() time.Duration {
	f.t.Helper()
	var took []time.Duration
	for range 11 {
		took = append(took, f.commit())
	}
	slices.Sort(took)
	f.t.Logf("a commit is seen after %v, at most %v", took[5], took[10])
	return took[5]
}

func owner(t *testing.T, dsn string) *postgres.DB {
	t.Helper()
	db := open(t, dsn, postgres.Options{Lease: time.Hour})
	t.Cleanup(func() { closed(t, db) })
	expect.No(t, db.CreateTenant(t.Context(), acme))
	return db
}

func TestWhoFollowsHearsOfACommitAtOnce(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	dsn := cluster.Database(t, "heard")
	f := follow(t, owner(t, dsn), dsn)
	took := f.median()
	expect.True(t, took <= 200*time.Millisecond, "half of the commits are seen after %v", took)
	// A bell that is lost, with the connection that listens to it.
	const listens = "from pg_stat_activity where query = 'listen swarmdeck'"
	for range 3 {
		expect.Is(t, cluster.SQL(t, "heard", "select count(*) "+listens), "1")
		cluster.SQL(t, "heard", "select pg_terminate_backend(pid) "+listens)
		f.commit()
		expect.Await(t, "nobody listens again", func() bool { return cluster.SQL(t, "heard", "select count(*) "+listens) == "1" })
	}
	// A server that was away.
	cluster.Kill(t)
	cluster.Run(t)
	f.commit()
}

func TestWhoFollowsThroughAPoolerLooks(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	cluster.Database(t, "pooled")
	dsn := cluster.Pooler(t).DSN("pooled")
	f := follow(t, owner(t, dsn), dsn)
	took := f.median()
	expect.True(t, took <= time.Second, "half of the commits are seen after %v", took)
	expect.Is(t, cluster.SQL(t, "pooled", "select count(*) from pg_stat_activity where query like 'listen%'"), "0", "connections of the pool listen")
}

func TestAStandbyIsFollowedAndTakesNoWrites(t *testing.T) {
	t.Parallel()
	primary := postgrestest.Start(t)
	dsn := primary.Database(t, "stood")
	standby := primary.Standby(t)
	db := owner(t, dsn)
	primary.CaughtUp(t, standby)
	of := standby.DSN("stood")
	f := follow(t, db, of)
	took := f.median()
	expect.True(t, took <= time.Second, "half of the commits are seen after %v", took)
	_, err := postgres.Open(t.Context(), of, postgres.Options{})
	want := "is a standby: it can only be read"
	expect.True(t, errors.Is(err, store.ErrStandby) && strings.Contains(fmt.Sprint(err), want), "%v, want %q", err, want)
	// Once it is promoted there are commits of its own.
	primary.Kill(t)
	standby.Promote(t)
	f.db = open(t, of, postgres.Options{Lease: time.Hour, Wait: time.Minute, Engine: db.Engine()})
	defer closed(t, f.db)
	f.commit()
}

func TestARoleThatWritesNothingIsTold(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	dsn := cluster.Database(t, "set")
	owner(t, dsn)
	cluster.SQL(t, "set", "alter database set set default_transaction_read_only = on")
	expect.Err(t, expect.Fault(postgres.Open(t.Context(), dsn, postgres.Options{})), store.ErrStandby)
	closed(t, open(t, dsn, postgres.Options{Options: store.Options{ReadOnly: true}}))
}
