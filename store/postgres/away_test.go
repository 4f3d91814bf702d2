package postgres_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

func TestAnOwnerOfWhoseTenantsOneMovesAwayKeepsTheOthers(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "away")
	const lease = 600 * time.Millisecond
	var lost atomic.Pointer[error]
	var held atomic.Int64
	db := open(t, dsn, postgres.Options{Lease: lease, Lost: func(_ string, err error) { lost.Store(&err) }, Held: func(_ string, until time.Time) { held.Store(until.UnixNano()) }})
	defer closed(t, db)
	const other = "t_other"
	for _, tenant := range []string{acme, other} {
		expect.No(t, errors.Join(db.CreateTenant(t.Context(), tenant), db.Update(t.Context(), tenant, put("k", "v"))))
	}
	l := expect.Of(db.Leave(t.Context(), acme))(t)
	expect.No(t, errors.Join(l.Hold(t.Context()), l.Gone(t.Context(), store.AwayError{Tenant: acme, Moved: true, Copy: "x", Place: "there"})))
	l.End()
	expect.StillFor(t, 3*lease, func() *error { return lost.Load() }, "what is told as lost")
	var away *store.AwayError
	err := db.Update(t.Context(), acme, put("k", "w"))
	expect.True(t, errors.As(err, &away) && away.Place == "there", "an update of the one that moved: %v", err)
	until := time.Unix(0, held.Load())
	expect.True(t, !until.Before(time.Now()), "what is left is held until %s, %s ago", until, time.Since(until))
	second := open(t, dsn, postgres.Options{Lease: lease})
	defer closed(t, second)
	expect.Err(t, second.Update(t.Context(), other, put("k", "w")), store.ErrLocked, "another takes the other tenant")
	err = second.Update(t.Context(), acme, put("k", "w"))
	expect.True(t, errors.As(err, &away), "another takes the one that moved: %v", err)
	expect.No(t, db.Update(t.Context(), other, put("k", "w")))
	if p := lost.Load(); p != nil {
		t.Errorf("told as lost: %v", *p)
	}
}
