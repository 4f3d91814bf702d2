package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

func TestAPoolerMayStandBeforeTheServer(t *testing.T) {
	t.Setenv(postgrestest.PoolerEnv, "1")
	again(t, "TestConformance|TestACommitWhose.*|TestAServerThatCrashes.*|TestAnOwnerWhoWas.*|TestALeaseKeeps.*")
}

func TestAPoolerThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	cluster.Database(t, "pooled")
	pooler := cluster.Pooler(t)
	db := open(t, pooler.DSN("pooled"), postgres.Options{Lease: time.Hour})
	expect.No(t, db.CreateTenant(t.Context(), acme))
	var good atomic.Int64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for c := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := db.Update(t.Context(), acme, put(fmt.Sprintf("%d-%05d", c, i), "v")); err != nil {
					t.Error(err)
					return
				}
				good.Add(1)
			}
		})
	}
	more := func() {
		until := good.Load() + 20
		expect.Await(t, "more is committed", func() bool { return good.Load() >= until || t.Failed() })
	}
	for round := range 6 {
		more()
		if round%2 == 0 {
			pooler.Kill(t)
			pooler.Run(t)
		} else { // it tells its clients of this in words of its own
			cluster.SQL(t, "postgres", "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'pooled'")
		}
	}
	more()
	close(stop)
	wg.Wait()
	closed(t, db)
	db = open(t, pooler.DSN("pooled"), postgres.Options{})
	defer closed(t, db)
	have, n := keys(t, db)
	expect.True(t, int64(len(have)) == good.Load() && n == good.Load(), "%d records, counter %d, acknowledged %d", len(have), n, good.Load())
}
