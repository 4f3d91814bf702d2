package postgres_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

func TestACommitLooksAtNoMoreRowsThanItChanges(t *testing.T) {
	cluster := postgrestest.Start(t)
	db := open(t, cluster.Database(t, "work"), postgres.Options{})
	defer closed(t, db)
	const many, few = 20_000, 200
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	if err := errors.Join(db.CreateTenant(t.Context(), acme), db.Update(t.Context(), acme, func(tx store.Tx) error {
		for i := range many { // of which the server has no statistics yet
			if err := tx.Put("b", key(i), []byte("v")); err != nil {
				return err
			}
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	looked := func(removed int) (n int) {
		expect.Await(t, "the server counts what is removed", func() (ok bool) {
			var err error
			n, err = strconv.Atoi(cluster.SQL(t, "work", fmt.Sprintf("select idx_tup_fetch + seq_tup_read from pg_stat_user_tables where relname = 'kv' and n_tup_del >= %d", removed)))
			return err == nil
		})
		return n
	}
	before := looked(0)
	expect.No(t, db.Update(t.Context(), acme, func(tx store.Tx) error {
		for i := range few {
			if err := errors.Join(tx.Delete("b", key(i*many/few)), tx.Put("b", key(i*many/few+1), []byte("w"))); err != nil {
				return err
			}
		}
		return nil
	}))
	n := looked(few) - before
	expect.True(t, n <= 6*few, "%d rows were looked at to change %d", n, 2*few)
}
