package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

// as is a DSN of another role.
func as(dsn, role string) string { return strings.Replace(dsn, "user=postgres", "user="+role, 1) }

// what the documentation says to grant.
const (
	writerGrants = "grant select on layout to worker; grant select, insert, update, delete on kv, engine to worker; grant select, insert, update on owner to worker"
	readerGrants = "grant select on layout, kv, owner, engine to reader"
)

func TestARoleThatOwnsNothingWorksOnTablesOfAnother(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	dsn := cluster.Database(t, "roles")
	cluster.SQL(t, "roles", "create role worker login; create role reader login")
	made := open(t, dsn, postgres.Options{})
	closed(t, made)
	cluster.SQL(t, "roles", writerGrants+";"+readerGrants)
	db := open(t, as(dsn, "worker"), postgres.Options{})
	expect.No(t, errors.Join(db.CreateTenant(t.Context(), acme), db.Update(t.Context(), acme, put("k", "v")),
		db.Update(t.Context(), acme, func(tx store.Tx) error { return tx.Delete("b", []byte("k")) }),
		db.Update(t.Context(), acme, put("l", "v"))))
	reader := open(t, as(dsn, "reader"), postgres.Options{Options: store.Options{ReadOnly: true}})
	have, n := keys(t, reader)
	expect.True(t, len(have) == 1 && n == 2, "the reader sees %q, counter %d", have, n)
	closed(t, reader)
	closed(t, db)
}

func TestEachMissingPrivilegeIsNamed(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	dsn := cluster.Database(t, "grants")
	cluster.SQL(t, "grants", "create role worker login; create role reader login; create role maker login; revoke create on schema public from public")
	refused := func(dsn string, readOnly bool, want string) {
		t.Helper()
		db, err := postgres.Open(t.Context(), dsn, postgres.Options{Options: store.Options{ReadOnly: readOnly}})
		if err == nil {
			closed(t, db)
		}
		clearly(t, err, want)
		expect.Err(t, err, store.ErrUnusable, "is of another kind")
	}
	refused(as(dsn, "maker"), false, "role maker lacks CREATE on schema public")
	refused(as(dsn, "maker")+"&search_path=nowhere", false, "role maker has no schema: none of search_path (nowhere)")
	closed(t, open(t, dsn, postgres.Options{}))
	refused(as(dsn, "worker"), false, "lacks SELECT on table layout")
	refused(as(dsn, "reader"), true, "lacks SELECT on table layout")
	cluster.SQL(t, "grants", "grant select on layout to worker, reader")
	refused(as(dsn, "worker"), false, "role worker lacks DELETE, INSERT, SELECT, UPDATE on table engine; DELETE, INSERT, SELECT, UPDATE on table kv; INSERT, SELECT, UPDATE on table owner")
	cluster.SQL(t, "grants", writerGrants+";"+readerGrants)
	for table, needs := range map[string]string{"kv": "select insert update delete", "owner": "select insert update", "engine": "select insert update delete"} {
		for _, need := range strings.Fields(needs) {
			cluster.SQL(t, "grants", fmt.Sprintf("revoke %s on %s from worker, reader", need, table))
			want := fmt.Sprintf("lacks %s on table %s", strings.ToUpper(need), table)
			refused(as(dsn, "worker"), false, want)
			if need == "select" {
				refused(as(dsn, "reader"), true, want)
			}
			cluster.SQL(t, "grants", fmt.Sprintf("grant %s on %s to worker", need, table))
			if need == "select" {
				cluster.SQL(t, "grants", fmt.Sprintf("grant select on %s to reader", table))
			}
		}
	}
	cluster.SQL(t, "grants", "revoke execute on function swarmdeck_commit from public")
	refused(as(dsn, "worker"), false, "role worker lacks EXECUTE on function swarmdeck_commit")
	closed(t, open(t, as(dsn, "reader"), postgres.Options{Options: store.Options{ReadOnly: true}}))
	cluster.SQL(t, "grants", "grant execute on function swarmdeck_commit to worker, reader")
	refused(as(dsn, "reader"), false, "role reader lacks DELETE, INSERT, UPDATE on table engine; DELETE, INSERT, UPDATE on table kv; INSERT, UPDATE on table owner")
	closed(t, open(t, as(dsn, "worker"), postgres.Options{}))
}
