package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/internal/group"
)

// Two steps of a made-up schema: names get upper case, then a prefix.
func upper(tx store.Tx) error {
	return rewrite(tx, bytes.ToUpper)
}

func prefix(tx store.Tx) error {
	tx.Add("migrated", 1)
	return rewrite(tx, func(v []byte) []byte { return append([]byte("mx "), v...) })
}

func rewrite(tx store.Tx, change func([]byte) []byte) error {
	type record struct{ key, value []byte }
	var all []record
	if err := tx.Scan("names", nil, nil, false, func(k, v []byte) (bool, error) {
		all = append(all, record{bytes.Clone(k), change(bytes.Clone(v))})
		return true, nil
	}); err != nil {
		return err
	}
	for _, r := range all {
		if err := tx.Put("names", r.key, r.value); err != nil {
			return err
		}
	}
	return nil
}

func names(t *testing.T, db *store.DB, tenant string) string {
	t.Helper()
	var out []string
	expect.No(t, db.View(ctx, tenant, func(tx store.Tx) error {
		return tx.Scan("names", nil, nil, false, func(_, v []byte) (bool, error) {
			out = append(out, string(v))
			return true, nil
		})
	}))
	return strings.Join(out, ",")
}

func TestAnOldFileIsMigratedInOneTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	steps := []store.Migration{{Name: "upper", Apply: upper}, {Name: "prefix", Apply: prefix}}
	reopen := func(n int) *store.DB {
		t.Helper()
		return expect.Of(store.Open(path, store.Options{Migrations: steps[:n]}))(t)
	}
	db := reopen(0)
	for _, id := range []string{"t_a", "t_b"} {
		expect.No(t, db.CreateTenant(ctx, id))
		expect.No(t, db.Update(ctx, id, func(tx store.Tx) error {
			return errors.Join(tx.Put("names", []byte("1"), []byte("ann "+id)), tx.Put("names", []byte("2"), []byte("bob")))
		}))
	}
	expect.No(t, db.Close())
	old := read(t, path)

	// Read-only can't migrate, and says so.
	_, err := store.Open(path, store.Options{ReadOnly: true, Migrations: steps})
	expect.Err(t, err, store.ErrUnusable, "read-only")
	// A step that fails for the second tenant leaves the first alone, too.
	failing := append([]store.Migration{}, steps[0], store.Migration{Name: "bad", Apply: func(tx store.Tx) error {
		if tx.Tenant() == "t_b" {
			return errors.New("no")
		}
		return prefix(tx)
	}})
	_, err = store.Open(path, store.Options{Migrations: failing})
	expect.True(t, errors.Is(err, store.ErrUnusable) && strings.Contains(fmt.Sprint(err), "migration 2 (bad) of tenant t_b"), "failing step: %v", err)
	r, err := store.Check(ctx, path)
	expect.True(t, err == nil && r.OK && r.Schema == 0, "%+v, %v", r, err)
	unchanged(t, path, old)

	db = reopen(2)
	expect.Is(t, names(t, db, "t_a"), "mx ANN T_A,mx BOB", "t_a")
	if got := names(t, db, "t_b"); got != "mx ANN T_B,mx BOB" || db.Schema() != 2 {
		t.Errorf("t_b: %s, schema %d", got, db.Schema())
	}
	expect.No(t, db.Close())
	// Once only, and never back.
	db = reopen(2)
	expect.Is(t, names(t, db, "t_a"), "mx ANN T_A,mx BOB", "after a second open")
	expect.No(t, db.Close())
	for _, readOnly := range []bool{false, true} {
		_, err := store.Open(path, store.Options{ReadOnly: readOnly, Migrations: steps[:1]})
		expect.True(t, errors.Is(err, store.ErrUnusable) && strings.Contains(err.Error(), "newer"), "with an older program: %v", err)
	}
	s, err := store.ReadStats(ctx, path)
	expect.True(t, err == nil && s.Schema == 2 && s.Tenants[0].Counters["migrated"] == 1, "%+v, %v", s, err)
}

func TestANewFileStartsAtTheEndOfTheMigrations(t *testing.T) {
	db := open(t, store.Options{Migrations: []store.Migration{{Name: "never", Apply: func(store.Tx) error {
		t.Error("a new file was migrated")
		return nil
	}}}})
	expect.Is(t, db.Schema(), 1, "schema")
}

func TestAFileOfAnotherLayoutNamesTheWayOut(t *testing.T) {
	for layout, want := range map[uint64]string{1: "read it with that build", 4: "upgrade the program"} {
		path := filepath.Join(t.TempDir(), "x.db")
		expect.No(t, expect.Of(store.Open(path, store.Options{}))(t).Close())
		file := expect.Of(bbolt.Open(path, 0o600, nil))(t)
		name := []byte("swarmdeck")
		expect.No(t, file.Update(func(tx *bbolt.Tx) error {
			value := binary.BigEndian.AppendUint64(nil, layout)
			return tx.Bucket(name).Put([]byte("layout"), group.Wrap(nil, group.SeedOf("", store.Bucket(name)), []byte("layout"), value))
		}))
		expect.No(t, file.Close())
		_, err := store.Open(path, store.Options{})
		expect.Says(t, err, fmt.Sprintf("file layout %d; this program knows 3: ", layout))
		expect.Says(t, err, want)
	}
}
