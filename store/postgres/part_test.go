package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

func TestAPartWorksOnItsTenantAndLooksAtTheOthers(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "part")
	first, second := open(t, dsn, postgres.Options{Engine: "first"}), open(t, dsn, postgres.Options{Engine: "second"})
	defer closed(t, second)
	defer closed(t, first)
	nobody := first.Part("")
	for _, tenant := range []string{acme, "t_other"} {
		expect.No(t, errors.Join(nobody.CreateTenant(t.Context(), tenant), nobody.Update(t.Context(), tenant, put("k", "v"))))
	}
	here, err := nobody.Here(t.Context())
	expect.True(t, len(here) == 0 && err == nil, "a part of nothing works on %q, %v", here, err)
	expect.Err(t, second.Take(t.Context(), acme), store.ErrLocked, "while the first has what it made")
	closed(t, nobody)
	part := second.Part(acme)
	here, err = part.Here(t.Context())
	expect.True(t, slices.Equal(here, []string{acme}) && err == nil, "it works on %q, %v", here, err)
	expect.No(t, errors.Join(second.Take(t.Context(), acme), part.Update(t.Context(), acme, put("l", "v"))))
	expect.Err(t, part.Update(t.Context(), "t_other", put("l", "v")), store.ErrLocked, "it writes to another tenant")
	if err := part.View(t.Context(), "t_other", func(tx store.Tx) error {
		v, err := tx.Get("b", []byte("k"))
		expect.True(t, string(v) == "v" && err == nil, "another tenant has %q, %v", v, err)
		return nil
	}); err != nil {
		t.Error(err)
	}
	// What it looks at stays with whoever has it.
	expect.No(t, first.Take(t.Context(), "t_other"))
}

func TestATenantIsHandedToOneEngineBeforeAllOthers(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "hand")
	const lease = 2 * time.Second
	var engines []*postgres.DB
	for _, name := range []string{"first", "second", "third"} {
		db := open(t, dsn, postgres.Options{Engine: name, Lease: lease})
		defer closed(t, db)
		expect.No(t, db.Join(t.Context(), postgres.Engine{Host: "here"}))
		engines = append(engines, db)
	}
	first, second, third := engines[0], engines[1], engines[2]
	expect.No(t, errors.Join(first.CreateTenant(t.Context(), acme), first.Update(t.Context(), acme, put("k", "v")), first.Give(acme, "second")))
	expect.Err(t, third.Take(t.Context(), acme), store.ErrLocked, "another than the heir")
	expect.No(t, second.Take(t.Context(), acme), "the heir")
	have, n := keys(t, second)
	expect.True(t, len(have) == 1 && n == 1, "it has %q, counter %d", have, n)
	conn := expect.Of(pgx.Connect(t.Context(), dsn))(t)
	defer conn.Close(context.Background())
	expect.Of(conn.Exec(t.Context(), "insert into engine (name, address, key, host, version, until) values ('dead', '', '', '', '', now())"))(t)
	known, owned, err := third.Engines(t.Context())
	expect.True(t, err == nil && len(known) == 4 && known[0].Live && known[0].Name == "first" && !known[3].Live && known[3].Name == "dead",
		"engines %+v, %v", known, err)
	expect.True(t, len(owned) == 1 && owned[0].Tenant == acme && owned[0].Engine == "second" && owned[0].Left > 0 && owned[0].Left <= lease, "owned %+v", owned)
	// An heir that does not come loses it again, and who had it may take it back.
	expect.No(t, second.Give(acme, "nobody"))
	began := time.Now()
	expect.Await(t, "another may take it", func() bool { return third.Take(t.Context(), acme) == nil })
	expect.True(t, time.Since(began) < 3*lease, "it was nobody's for %s", time.Since(began))
}

func TestAPartGivesUpNothingThatAnotherWorksOn(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "made")
	first, second := open(t, dsn, postgres.Options{Engine: "first"}), open(t, dsn, postgres.Options{Engine: "second"})
	defer closed(t, second)
	defer closed(t, first)
	maker := first.Part(acme)
	for _, tenant := range []string{acme, "t_other"} {
		expect.No(t, errors.Join(maker.CreateTenant(t.Context(), tenant), maker.Update(t.Context(), tenant, put("k", "v"))))
	}
	other := first.Part("t_other")
	expect.No(t, errors.Join(first.Take(t.Context(), "t_other"), other.Update(t.Context(), "t_other", put("l", "v"))))
	expect.Err(t, maker.Update(t.Context(), "t_other", put("m", "v")), store.ErrLocked, "who made it goes on with it")
	closed(t, maker)
	expect.Err(t, second.Take(t.Context(), "t_other"), store.ErrLocked, "it went with the part that made it")
	expect.No(t, other.Update(t.Context(), "t_other", put("n", "v")))
}

func TestAPartIsOverOnceItsTenantWasGivenUp(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "over")
	first, second := open(t, dsn, postgres.Options{Engine: "first"}), open(t, dsn, postgres.Options{Engine: "second"})
	defer closed(t, second)
	defer closed(t, first)
	part := first.Part(acme)
	expect.No(t, errors.Join(part.CreateTenant(t.Context(), acme), part.Update(t.Context(), acme, put("k", "v")), first.Give(acme, "")))
	expect.Fails(t, part.Update(t.Context(), acme, put("l", "v")), "it writes what it has in memory of another time")
	expect.Fails(t, part.View(t.Context(), acme, func(store.Tx) error { return nil }), "it reads")
	expect.No(t, second.Take(t.Context(), acme), "it has taken it again")
}
