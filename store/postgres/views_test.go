package postgres_test

import (
	"errors"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

func TestAViewShowsTextAsItIs(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	dsn := cluster.Database(t, "views")
	db := open(t, dsn, postgres.Options{})
	defer closed(t, db)
	titles := []string{`plain`, `"quoted"`, `ÄÖ 你好 🐝`, `\u00e4 \ud83d\ude00`, `\u0000`, `a\u0000\u0000b`, `\\u0000`, `\\\u0000`, `\\\\u0000 \n\t`, `''; drop table kv`}
	expect.No(t, errors.Join(db.CreateTenant(t.Context(), acme), db.Update(t.Context(), acme, func(tx store.Tx) error {
		for i, title := range titles {
			if title == `"quoted"` {
				title = `\"quoted\"`
			}
			if err := tx.Put("task", []byte{byte(i)}, []byte(`{"task_id":"x","title":"`+title+`","priority":50,"created_at":"2026-11-27T11:44:00.123456Z"}`)); err != nil {
				return err
			}
		}
		return nil
	})))
	want := "plain\n\"quoted\"\nÄÖ 你好 🐝\nä 😀\n\ufffd\na\ufffd\ufffdb\n\\u0000\n\\\ufffd\n\\\\u0000 \n\t\n''; drop table kv"
	expect.Is(t, cluster.SQL(t, "views", "select title from swarmdeck_tasks"), want, "titles")
	got := cluster.SQL(t, "views", "select distinct tenant_id, priority, created_at at time zone 'UTC', completed_at is null from swarmdeck_tasks")
	expect.True(t, got == "t_acme|50|2026-11-27 11:44:00.123456|t", "%v", got)
}

func TestARoleMaySeeTheViewsAlone(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	dsn := cluster.Database(t, "analysts")
	db := open(t, dsn, postgres.Options{})
	defer closed(t, db)
	expect.No(t, errors.Join(db.CreateTenant(t.Context(), acme), db.Update(t.Context(), acme, func(tx store.Tx) error {
		return tx.Put("task", []byte{1}, []byte(`{"task_id":"x"}`))
	})))
	cluster.SQL(t, "analysts", "create role analyst login; grant select on swarmdeck_tasks to analyst")
	for statement, allowed := range map[string]bool{
		"select task_id from swarmdeck_tasks":     true,
		"select count(*) from swarmdeck_audit":    false,
		"select count(*) from kv":                 false,
		"delete from kv":                          false,
		"select count(*) from owner":              false,
		"update swarmdeck_tasks set task_id = ''": false,
	} {
		err := cluster.Try(t, as(dsn, "analyst"), statement)
		expect.Is(t, err == nil, allowed, statement, err)
	}
}
