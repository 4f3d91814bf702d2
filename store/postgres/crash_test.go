package postgres_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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
			dsn, err := schemaOf(os.Getenv(crashDSN), databaseOf(dir))
			if err != nil {
				return nil, err
			}
			db, err := postgres.Open(context.Background(), dsn, postgres.Options{
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

// schemaOf makes a schema for the tables of one store and returns a DSN for it.
func schemaOf(dsn, name string) (string, error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "create schema if not exists "+name)
	return dsn + "&search_path=" + name, err
}
