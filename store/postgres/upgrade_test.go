package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

func TestAnOlderProgramWorksBesideANewerLayout(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database(t, "beside")
	older := owner(t, dsn)
	newer := expect.Of(postgres.OpenNext(t.Context(), dsn, postgres.Options{Lease: time.Hour}, "create table more (n int)", false))(t)
	defer closed(t, newer)
	expect.No(t, older.Update(t.Context(), acme, put("before", "v")))
	again := open(t, dsn, postgres.Options{Lease: time.Hour}) // as one that was started again
	defer closed(t, again)
	if err := errors.Join(older.Give(acme, newer.Engine()), newer.Update(t.Context(), acme, put("newer", "v")),
		newer.Give(acme, again.Engine()), again.Update(t.Context(), acme, put("again", "v"))); err != nil {
		t.Error(err)
	}
}

func TestALayoutThatOlderProgramsCannotWorkOnWaitsForThem(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	dsn := cluster.Database(t, "alone")
	older := owner(t, dsn)
	next := func() (*postgres.DB, error) {
		return postgres.OpenNext(t.Context(), dsn, postgres.Options{Engine: "newer"}, "create table more (n int)", true)
	}
	expect.No(t, errors.Join(older.Join(t.Context(), postgres.Engine{Host: "deck1", Version: "v1.2.0"}), older.Update(t.Context(), acme, put("k", "v"))))
	_, err := next()
	expect.True(t, errors.Is(err, store.ErrUnusable) && strings.Contains(fmt.Sprint(err), "stop them first: deck1 (v1.2.0)"), "beside an older engine: %v", err)
	expect.No(t, older.Update(t.Context(), acme, put("l", "v")), "the older one")
	// One that is not seen any more, and wakes up.
	cluster.SQL(t, "alone", "update engine set until = '-infinity'")
	newer := expect.Of(next())(t)
	defer closed(t, newer)
	expect.Err(t, older.Update(t.Context(), acme, put("m", "v")), store.ErrFenced, "the older one writes on")
	err = older.Take(t.Context(), acme)
	expect.True(t, errors.Is(err, store.ErrUnusable) && strings.Contains(fmt.Sprint(err), "newer than this program's"), "the older one takes it: %v", err)
	expect.No(t, newer.Take(t.Context(), acme))
	if err := older.Take(t.Context(), acme); !errors.Is(err, store.ErrLocked) {
		t.Errorf("one that the newer has: %v", err) // whom the older one can ask
	}
	for _, readOnly := range []bool{false, true} {
		_, err = postgres.Open(t.Context(), dsn, postgres.Options{Options: store.Options{ReadOnly: readOnly}})
		expect.Err(t, err, store.ErrUnusable, "an older program")
	}
}

func TestAnOlderProgramLeavesATenantOfANewerSchemaAlone(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database(t, "schema")
	older := owner(t, dsn)
	step := store.Migration{Name: "one", Apply: func(tx store.Tx) error { return tx.Put("b", []byte("moved"), nil) }}
	newer := open(t, dsn, postgres.Options{Options: store.Options{Migrations: []store.Migration{step}}})
	defer closed(t, newer)
	expect.No(t, errors.Join(newer.Take(t.Context(), acme), newer.Give(acme, "")))
	err := older.Take(t.Context(), acme)
	expect.True(t, errors.Is(err, store.ErrUnusable) && strings.Contains(fmt.Sprint(err), "schema 1 is newer"), "%v", err)
}

func TestEnginesThatOpenAnEmptyDatabaseAtOnceShareIt(t *testing.T) {
	cluster := postgrestest.Start(t)
	for i := range 5 {
		dsn := cluster.Database(t, fmt.Sprint("empty", i))
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				db, err := postgres.Open(t.Context(), dsn, postgres.Options{})
				if expect.True(t, err == nil, "%v", err); err == nil {
					closed(t, db)
				}
			})
		}
		all.Wait()
	}
}
