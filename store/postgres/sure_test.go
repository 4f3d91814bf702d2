package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

func TestAnOwnerThatIsCutOffAnswersNothingOfWhatAnotherHas(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database(t, "deaf")
	r, through := newRelay(t, dsn)
	owner, next := open(t, through, postgres.Options{Lease: time.Second}), open(t, dsn, postgres.Options{Wait: time.Minute})
	defer closed(t, next)
	expect.No(t, errors.Join(owner.CreateTenant(t.Context(), acme), owner.Update(t.Context(), acme, put("k", "v"))))
	r.deaf.Store(true)
	expect.No(t, next.Update(t.Context(), acme, put("next", "v")))
	for name, look := range map[string]func(context.Context) error{
		"a view":                      func(ctx context.Context) error { return owner.View(ctx, acme, func(store.Tx) error { return nil }) },
		"an update of what is so yet": func(ctx context.Context) error { return owner.Update(ctx, acme, func(store.Tx) error { return nil }) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		expect.Fails(t, look(ctx), name)
		cancel()
	}
	r.deaf.Store(false)
	expect.Err(t, owner.View(t.Context(), acme, func(store.Tx) error { return nil }), store.ErrFenced, "once it hears again")
	closed(t, owner)
}

func TestAnOwnerThatIsHeardButHearsNothingKeepsNoTenant(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	r, through := newRelay(t, cluster.Database(t, "heard"))
	owner := open(t, through, postgres.Options{Lease: 2 * time.Second})
	expect.No(t, errors.Join(owner.CreateTenant(t.Context(), acme), owner.Update(t.Context(), acme, put("k", "v"))))
	var idle sync.WaitGroup
	for range 8 { // connections that have just been heard, too
		idle.Go(func() {
			_, err := owner.Tenants(t.Context())
			expect.True(t, err == nil, "%v", err)
		})
	}
	idle.Wait()
	r.deaf.Store(true)
	ends := cluster.SQL(t, "heard", "select until from owner")
	for cluster.SQL(t, "heard", "select until <= clock_timestamp() from owner") != "t" {
		now := cluster.SQL(t, "heard", "select until from owner")
		expect.Must(t, now == ends, "its lease was to end at %s, and was made longer to %s", ends, now)
	}
	r.deaf.Store(false)
	closed(t, owner)
}
