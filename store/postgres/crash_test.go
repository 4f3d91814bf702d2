package postgres_test

import (
	"os"
	"testing"
	"time"

	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
	"swarmdeck/store/storetest"
)

// crashDSN names the server in the environment of the children that are killed.
const crashDSN = "SWARMDECK_CRASH_DSN"

func TestKilledAtAnyInstantKeepsWhatWasAcknowledged(t *testing.T) {
	if os.Getenv(crashDSN) == "" {
		t.Setenv(crashDSN, postgrestest.Start(t).Database(t, "crash"))
	}
	storetest.Crash(t, storetest.CrashOptions{
		Life:   300 * time.Millisecond,
		Budget: 15 * time.Second,
		Open: func(dir string) (store.Store, error) {
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
