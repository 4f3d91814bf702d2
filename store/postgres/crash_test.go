package postgres_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
	"swarmdeck/store/storetest"
)

// crashDSN names the server in the environment of the children that are killed.
const crashDSN = "SWARMDECK_CRASH_DSN"

func TestKilledAtAnyInstantKeepsWhatWasAcknowledged(t *testing.T) {
	settle := func() {}
	if os.Getenv(crashDSN) == "" {
		cluster := postgrestest.Start(t)
		t.Setenv(crashDSN, cluster.Database(t, "crash"))
		settle = func() { // without a lease, what the killed one said last would count after who comes next
			expect.Await(t, "the server is done with who was killed", func() bool {
				return strings.TrimSpace(cluster.SQL(t, "crash", "select count(*) from pg_stat_activity where datname = 'crash' and pid <> pg_backend_pid()")) == "0"
			})
		}
	}
	storetest.Crash(t, storetest.CrashOptions{
		Life:   300 * time.Millisecond,
		Budget: 15 * time.Second,
		Open: func(dir string) (store.Store, error) {
			settle()
			db, err := postgrestest.Open(os.Getenv(crashDSN), dir, postgres.Options{
				Lease:   -1, // the one who was killed has no say
				Options: store.Options{Seal: func(tx store.Tx) error { tx.Add("seals", 1); return nil }},
			})
			if err != nil {
				return nil, err
			}
			return db, nil
		},
	})
}
