package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
	"swarmdeck/store/storetest"
)

// TestConformanceWithHardlyAnyMemory has nearly everything read again and again.
func TestConformanceWithHardlyAnyMemory(t *testing.T) {
	cluster := postgrestest.Start(t)
	storetest.Run(t, func(t testing.TB, dir string, opt store.Options) store.Store {
		return open(t, cluster.Database(t, postgrestest.NameOf(dir)), postgres.Options{Options: opt, Memory: 2000})
	})
}

func TestAViewKeepsItsMomentWhateverIsCommitted(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "views")
	for _, memory := range []int64{1, postgres.DefaultMemory} {
		db := open(t, dsn, postgres.Options{Memory: memory})
		err := db.CreateTenant(t.Context(), acme)
		expect.Must(t, err == nil || errors.Is(err, store.ErrTenantExists), "%v", err)
		write := func(round int) {
			if err := db.Update(t.Context(), acme, func(tx store.Tx) error {
				for i := range 300 {
					if err := tx.Put("b", fmt.Appendf(nil, "%04d", i), fmt.Append(nil, round)); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
		write(1)
		closed(t, db)
		db = open(t, dsn, postgres.Options{Memory: memory})
		if err := db.View(t.Context(), acme, func(tx store.Tx) error {
			n := 0
			see := func(_, v []byte) (bool, error) {
				expect.Is(t, string(v), "1", "memory", memory, "the view sees", v)
				if n++; n%70 == 0 {
					write(n)
				}
				return true, nil
			}
			if err := tx.Scan("b", nil, nil, false, see); err != nil {
				return err
			}
			expect.Is(t, n, 300)
			return tx.Scan("b", []byte("0100"), nil, true, see)
		}); err != nil {
			t.Error(err)
		}
		closed(t, db)
	}
}

func TestADamagedRecordIsNoticed(t *testing.T) {
	cluster := postgrestest.Start(t)
	dsn := cluster.Database(t, "damage")
	db := open(t, dsn, postgres.Options{})
	expect.No(t, errors.Join(db.CreateTenant(t.Context(), acme), db.Update(t.Context(), acme, put("k", "value")),
		db.Update(t.Context(), acme, put("whole", "value"))))
	closed(t, db)
	cluster.SQL(t, "damage", `update kv set value = set_byte(value, 5, 7) where key = 'k'`)
	db = open(t, dsn, postgres.Options{})
	defer closed(t, db)
	if err := db.View(t.Context(), acme, func(tx store.Tx) error {
		if v, err := tx.Get("b", []byte("whole")); err != nil || !bytes.Equal(v, []byte("value")) {
			t.Errorf("its neighbour: %q, %v", v, err)
		}
		_, err := tx.Get("b", []byte("k"))
		return err
	}); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("view: %v", err)
	}
}

func TestARecordThatOthersPutFailsOneCommit(t *testing.T) {
	cluster := postgrestest.Start(t)
	db := owner(t, cluster.Database(t, "others"))
	expect.No(t, db.Update(t.Context(), acme, put("a", "v")))
	cluster.SQL(t, "others", `insert into kv select tenant, bucket, 'b', value from kv where key = 'a'`)
	err := db.Update(t.Context(), acme, put("b", "v"))
	expect.True(t, errors.Is(err, store.ErrUnusable) && strings.Contains(err.Error(), "kv_pkey"), "on a record that was not known: %v", err)
	expect.No(t, db.Update(t.Context(), acme, put("b", "v")), "once it is known")
	have, n := keys(t, db)
	expect.True(t, slices.Equal(have, []string{"a", "b"}) && n == 2, "%q, counter %d", have, n)
}

func TestWhatCameAndWentWithinACommitIsNotWritten(t *testing.T) {
	cluster := postgrestest.Start(t)
	db := owner(t, cluster.Database(t, "within"))
	keep := func(tx store.Tx) error { return tx.Put("b", []byte("kept"), []byte("v")) }
	expect.No(t, db.Update(t.Context(), acme, keep))
	// Two updates of one group, and what the next one finds.
	steps := []func(store.Tx) error{
		func(tx store.Tx) error {
			return errors.Join(tx.Put("b", []byte("brief"), []byte("v")), tx.Put("b", []byte("again"), []byte("v")), tx.Delete("b", []byte("kept")))
		},
		func(tx store.Tx) error {
			return errors.Join(tx.Delete("b", []byte("brief")), tx.Delete("b", []byte("again")), keep(tx))
		},
		func(tx store.Tx) error { return tx.Put("b", []byte("again"), []byte("w")) },
	}
	expect.No(t, db.Update(t.Context(), acme, func(tx store.Tx) error { return errors.Join(steps[0](tx), steps[1](tx), steps[2](tx)) }))
	have, _ := keys(t, db)
	expect.True(t, slices.Equal(have, []string{"again", "kept"}), "%q", have)
	for _, step := range steps {
		expect.No(t, db.Update(t.Context(), acme, step))
	}
	expect.Is(t, cluster.SQL(t, "within", "select string_agg(convert_from(key, 'UTF8'), ',' order by key) from kv where bucket = 'b'"), "again,kept")
}
