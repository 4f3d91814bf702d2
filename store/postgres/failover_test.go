package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

// behind is a database whose standby lacks the last commits of an owner, and takes over.
type behind struct {
	dsn    string
	owner  *postgres.DB
	lost   chan error
	before []string // the keys that the standby has
}

func newBehind(t *testing.T, lease time.Duration) *behind {
	t.Helper()
	primary := postgrestest.Start(t)
	primary.Database(t, "failover")
	standby := primary.Standby(t)
	b := &behind{dsn: primary.Either("failover", standby), lost: make(chan error, 1)}
	b.owner = open(t, b.dsn, postgres.Options{Lease: lease, Engine: "owner", Lost: func(_ string, err error) { b.lost <- err }})
	expect.No(t, b.owner.CreateTenant(t.Context(), acme))
	commit := func(prefix string) {
		for i := range 5 {
			expect.No(t, b.owner.Update(t.Context(), acme, put(fmt.Sprint(prefix, i), "v")))
		}
	}
	commit("before")
	b.before, _ = keys(t, b.owner)
	primary.CaughtUp(t, standby)
	standby.Kill(t) // it gets no more
	commit("lost")
	primary.Kill(t)
	standby.Run(t)
	standby.Promote(t)
	return b
}

// next checks that another engine goes on from what the standby had.
func (b *behind) next(t *testing.T) {
	t.Helper()
	next := open(t, b.dsn, postgres.Options{Engine: "next", Wait: time.Minute})
	defer closed(t, next)
	expect.No(t, next.Update(t.Context(), acme, put("next", "v")))
	want := append(slices.Clone(b.before), "next")
	have, n := keys(t, next)
	expect.True(t, slices.Equal(have, want) && n == int64(len(want)), "%q, counter %d, want %q", have, n, want)
	closed(t, b.owner) // which gives up nothing of the next one's
	expect.No(t, next.Update(t.Context(), acme, put("more", "v")))
}

func TestAnOwnerWhoseCommitsAStandbyLacksWritesNothingOnTop(t *testing.T) {
	t.Parallel()
	b := newBehind(t, time.Second)
	for range 3 {
		expect.Err(t, b.owner.Update(t.Context(), acme, put("on top", "v")), store.ErrFenced, "an update")
	}
	expect.Err(t, b.owner.View(t.Context(), acme, func(store.Tx) error { return nil }), store.ErrFenced, "a view")
	expect.Err(t, <-b.lost, store.ErrFenced)
	b.next(t)
}

func TestAnIdleOwnerNoticesThatAStandbyLacksItsCommits(t *testing.T) {
	t.Parallel()
	b := newBehind(t, time.Second)
	select {
	case err := <-b.lost: // by its next renewal
		expect.Err(t, err, store.ErrFenced)
	case <-time.After(time.Minute):
		t.Fatal("it goes on with what it has in memory")
	}
	expect.Err(t, b.owner.View(t.Context(), acme, func(store.Tx) error { return nil }), store.ErrFenced, "a view")
	b.next(t)
}

func TestAnOwnerGoesOnWithAStandbyThatHasAll(t *testing.T) {
	t.Parallel()
	primary := postgrestest.Start(t)
	primary.Database(t, "failover")
	standby := primary.Standby(t)
	dsn := primary.Either("failover", standby)
	db := open(t, dsn, postgres.Options{Lease: time.Hour})
	defer closed(t, db)
	expect.No(t, errors.Join(db.CreateTenant(t.Context(), acme), db.Update(t.Context(), acme, put("k", "v"))))
	primary.CaughtUp(t, standby)
	primary.Kill(t)
	standby.Promote(t)
	expect.No(t, db.Update(t.Context(), acme, put("l", "v")))
	have, n := keys(t, db)
	expect.True(t, len(have) == 2 && n == 2, "%q, counter %d", have, n)
}

func TestWhoEndsGivesUpNoLeaseOfAnother(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	db := open(t, cluster.Database(t, "give"), postgres.Options{Lease: time.Hour})
	expect.No(t, errors.Join(db.CreateTenant(t.Context(), acme), db.Update(t.Context(), acme, put("k", "v"))))
	cluster.SQL(t, "give", "update owner set engine = 'other'") // as after a failover that lost the take: of one epoch
	closed(t, db)
	expect.Is(t, cluster.SQL(t, "give", "select engine from owner"), "other")
}
