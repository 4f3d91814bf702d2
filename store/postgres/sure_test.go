package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

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
	if err := errors.Join(owner.CreateTenant(t.Context(), acme), owner.Update(t.Context(), acme, put("k", "v"))); err != nil {
		t.Fatal(err)
	}
	r.deaf.Store(true)
	if err := next.Update(t.Context(), acme, put("next", "v")); err != nil {
		t.Fatal(err)
	}
	for name, look := range map[string]func(context.Context) error{
		"a view":                      func(ctx context.Context) error { return owner.View(ctx, acme, func(store.Tx) error { return nil }) },
		"an update of what is so yet": func(ctx context.Context) error { return owner.Update(ctx, acme, func(store.Tx) error { return nil }) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := look(ctx); err == nil {
			t.Errorf("%s of what the former owner has in memory is answered", name)
		}
		cancel()
	}
	r.deaf.Store(false)
	if err := owner.View(t.Context(), acme, func(store.Tx) error { return nil }); !errors.Is(err, store.ErrFenced) {
		t.Errorf("once it hears again: %v", err)
	}
	closed(t, owner)
}
