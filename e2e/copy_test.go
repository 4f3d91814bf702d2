package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

// contents are all records and counters that a tenant has in a store.
func contents(t testing.TB, place, tenant string) map[string]string {
	t.Helper()
	var st store.Store
	var err error
	if strings.HasPrefix(place, "postgres://") {
		st, err = postgres.Open(t.Context(), place, postgres.Options{Options: store.Options{ReadOnly: true}})
	} else {
		st, err = store.Open(place, store.Options{ReadOnly: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	all := map[string]string{}
	if err := st.View(context.Background(), tenant, func(tx store.Tx) error {
		names, err := tx.(store.Inventory).Buckets()
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := tx.Scan(name, nil, nil, false, func(k, v []byte) bool {
				all[fmt.Sprintf("%s %x", name, k)] = string(bytes.Clone(v))
				return true
			}); err != nil {
				return err
			}
		}
		return tx.(store.Inventory).Counters(func(name string, n int64) {
			if n != 0 { // as one that was never written is
				all["counter "+name] = fmt.Sprint(n)
			}
		})
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// equal says which records differ.
func equal(t testing.TB, a, b map[string]string) {
	t.Helper()
	if len(a) == 0 {
		t.Error("there is nothing to compare")
	}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if b[key] != a[key] {
			t.Errorf("%s: %q, in the copy %q", key, a[key], b[key])
		}
	}
	for key := range b {
		if _, known := a[key]; !known {
			t.Errorf("%s is in the copy alone", key)
		}
	}
}

// filled is a user whose tenant has tasks, a secret and an output too large for a
// record.
func filled(t *testing.T) *user {
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	u.ok("tenant", "create", "t_other")
	u.ok("secret", "set", "token", "--tenant", "t_acme", "--from-file", u.file("token", "hush-hush"))
	u.ok("task", "dispatch", "--tenant", "t_acme", "--kind", "exec.run", "--wait", "--input", `{"argv":["head","-c","3000000","/dev/zero"]}`)
	for range 3 {
		u.ok("task", "dispatch", "--tenant", "t_acme", "--kind", "exec.run", "--input", `{"argv":["true"]}`)
	}
	return u
}

func (u *user) file(name, text string) string {
	u.t.Helper()
	path := filepath.Join(u.home, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		u.t.Fatal(err)
	}
	return path
}

func TestACopyOfATenantIsEqualInFilesAndDatabases(t *testing.T) {
	t.Parallel()
	pg := postgrestest.Start(t)
	dsn := pg.Database(t, "copy")
	u := filled(t)
	before := contents(t, u.data(), "t_acme")
	out := u.ok("store", "copy", "--tenant", "t_acme", "--to", dsn, "--keep")
	for _, want := range []string{"copied t_acme from " + u.data(), "a snapshot", "verifies and reconciles", ".spill/t_acme", ".secrets.key"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %s", want, out)
		}
	}
	equal(t, before, contents(t, dsn, "t_acme"))
	equal(t, before, contents(t, u.data(), "t_acme"))
	second := filepath.Join(u.home, "second.db")
	u.ok("store", "copy", "--data", dsn, "--to", second, "--keep") // it has one tenant
	equal(t, before, contents(t, second, "t_acme"))
	for _, place := range []string{dsn, second} {
		u.ok("audit", "verify", "--data", place)
		u.ok("audit", "reconcile", "--data", place)
		u.ok("task", "dispatch", "--data", place, "--kind", "exec.run", "--wait", "--input", `{"argv":["sh","-c","test \"$T\" = hush-hush"],"env":{"T":"@token"}}`)
	}
	for name, line := range map[string][]string{
		"there already": {"--tenant", "t_acme", "--to", dsn, "--keep"},
		"the same":      {"--tenant", "t_acme", "--to", u.data(), "--keep"},
		"unknown":       {"--tenant", "t_nobody", "--to", dsn, "--keep"},
	} {
		want := map[string]string{"there already": "has a tenant t_acme already", "the same": "is the store that the tenant is in", "unknown": "not found; there are: t_acme, t_other"}[name]
		if code, _, said := u.run(append([]string{"store", "copy"}, line...)...); code != 1 || !strings.Contains(said, want) {
			t.Errorf("%s: exit %d, %s", name, code, said)
		}
	}
}
