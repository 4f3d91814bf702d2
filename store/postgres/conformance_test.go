package postgres_test

import (
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
	"swarmdeck/store/storetest"
)

func open(t testing.TB, dsn string, opt postgres.Options) *postgres.DB {
	t.Helper()
	return expect.Of(postgres.Open(t.Context(), dsn, opt))(t)
}

func TestConformance(t *testing.T) {
	cluster := postgrestest.Start(t)
	storetest.Run(t, func(t testing.TB, dir string, opt store.Options) store.Store {
		return open(t, cluster.Database(t, postgrestest.NameOf(dir)), postgres.Options{Options: opt})
	})
}
