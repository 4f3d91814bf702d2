package postgres_test

import (
	"hash/fnv"
	"strconv"
	"testing"

	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
	"swarmdeck/store/storetest"
)

// databaseOf is the database that stands for a directory.
func databaseOf(dir string) string {
	sum := fnv.New64a()
	sum.Write([]byte(dir))
	return "d" + strconv.FormatUint(sum.Sum64(), 36)
}

func open(t testing.TB, dsn string, opt postgres.Options) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), dsn, opt)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestConformance(t *testing.T) {
	cluster := postgrestest.Start(t)
	storetest.Run(t, func(t testing.TB, dir string, opt store.Options) store.Store {
		return open(t, cluster.Database(t, databaseOf(dir)), postgres.Options{Options: opt})
	})
}
