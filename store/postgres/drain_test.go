package postgres_test

import (
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

func TestEnginesKnowThatOneIsStopped(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dsn := server.Database(t, "drain")
	one, two := open(t, dsn, postgres.Options{Engine: "one", Lease: time.Hour}), open(t, dsn, postgres.Options{Engine: "two", Lease: time.Hour})
	defer closed(t, one)
	defer closed(t, two)
	seen := func() map[string]postgres.Engine {
		t.Helper()
		all, _, err := two.Engines(t.Context())
		expect.No(t, err)
		by := map[string]postgres.Engine{}
		for _, e := range all {
			by[e.Name] = e
		}
		return by
	}
	if err := one.Drain(t.Context()); err != nil || len(seen()) > 0 { // it has not joined
		t.Error(err)
	}
	expect.No(t, one.Join(t.Context(), postgres.Engine{}))
	expect.No(t, two.Join(t.Context(), postgres.Engine{}))
	all := seen()
	expect.True(t, all["one"].Live && !all["one"].Draining, "%+v", all)
	expect.No(t, one.Drain(t.Context()))
	all = seen()
	expect.True(t, all["one"].Draining && all["one"].Live && !all["two"].Draining, "%+v", all)
	// What an engine says that does not know that engines are stopped, over and over.
	for range 2 {
		server.SQL(t, "drain", `insert into engine as e (name, address, key, host, version, signer, until, layout) values ('old', '', '', 'deck0', 'v1', '', clock_timestamp() + interval '1 hour', 6)
on conflict (name) do update set address = excluded.address, until = excluded.until, layout = excluded.layout, seen = clock_timestamp()`)
	}
	old := seen()["old"]
	expect.True(t, old.Live && !old.Draining, "%+v", old)
}
