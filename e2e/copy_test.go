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
	"sync"
	"syscall"
	"testing"
	"time"

	"swarmdeck/expect"
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
	expect.No(t, err)
	defer st.Close()
	all := map[string]string{}
	if err := st.View(context.Background(), tenant, func(tx store.Tx) error {
		names, err := tx.(store.Inventory).Buckets()
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := tx.Scan(name, nil, nil, false, func(k, v []byte) (bool, error) {
				all[fmt.Sprintf("%s %x", name, k)] = string(bytes.Clone(v))
				return true, nil
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
	expect.True(t, len(a) != 0, "there is nothing to compare")
	for _, key := range slices.Sorted(maps.Keys(a)) {
		expect.Is(t, b[key], a[key], key)
	}
	for key := range b {
		_, known := a[key]
		expect.True(t, known, "%s is in the copy alone", key)
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
	expect.No(u.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestACopyOfATenantIsEqualInFilesAndOnADatabase(t *testing.T) {
	t.Parallel()
	pg := postgrestest.Start(t)
	dsn := pg.Database(t, "copy")
	u := filled(t)
	before := contents(t, u.data(), "t_acme")
	out := u.ok("store", "copy", "--tenant", "t_acme", "--to", dsn, "--keep")
	for _, want := range []string{"copied t_acme from " + u.data(), "a snapshot", "verifies and reconciles", ".run/spill/t_acme", ".secrets.key"} {
		expect.Has(t, out, want)
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
		code, _, said := u.run(append([]string{"store", "copy"}, line...)...)
		expect.True(t, code == 1 && strings.Contains(said, want), "%s: exit %d, %s", name, code, said)
	}
}

func TestATenantMovesToADatabaseWhileItIsWrittenTo(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database(t, "move")
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	u.moves(t, u.data(), dsn)
	u.moves(t, dsn, filepath.Join(u.home, "to.db"))
}

// moves moves t_acme while tasks are dispatched to it, and looks at both sides.
func (u *user) moves(t *testing.T, from, to string) {
	t.Helper()
	d := u.daemon("serve", "--data", from)
	stop := make(chan struct{})
	var all sync.WaitGroup
	var mu sync.Mutex
	var ids []string
	var last string
	for range 2 {
		all.Go(func() {
			for {
				code, out, said := u.run("task", "dispatch", "--data", from, "--tenant", "t_acme", "-o", "json", "--kind", "exec.run", "--input", `{"argv":["true"]}`)
				mu.Lock()
				if code != 0 {
					last = said
					mu.Unlock()
					return
				}
				ids = append(ids, field(out, "task_id"))
				mu.Unlock()
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	expect.Await(t, "tasks", func() bool { mu.Lock(); defer mu.Unlock(); return len(ids) > 10 })
	code, out, said := u.run("store", "copy", "--data", from, "--tenant", "t_acme", "--to", to)
	if code != 0 || !strings.Contains(out, "moved t_acme from "+from) && !strings.Contains(out, "moved t_acme from postgres") {
		close(stop)
		all.Wait()
		t.Fatalf("exit %d: %s%s", code, out, said)
	}
	all.Wait()
	close(stop)
	expect.True(t, strings.Contains(last, "has moved to ") && strings.Contains(last, "NOT_FOUND"), "the last dispatch ended with %s", last)
	code, _, said = u.run("task", "list", "--data", from, "--tenant", "t_acme")
	expect.True(t, code == 1 && strings.Contains(said, "has moved to "), "a list where it was: exit %d, %s", code, said)
	u.ok("tenant", "create", "--data", from, "t_late") // the engine goes on
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
	code, _, said = u.run("task", "list", "--data", from, "--tenant", "t_acme")
	expect.True(t, code == 1 && strings.Contains(said, "has moved to "), "a list where it was, later: exit %d, %s", code, said)
	u.ok("audit", "verify", "--data", to, "--tenant", "t_acme")
	u.ok("audit", "reconcile", "--data", to, "--tenant", "t_acme")
	have := contents(t, to, "t_acme")
	expect.True(t, len(ids) >= 10, "only %d tasks", len(ids))
	for _, id := range ids {
		u.ok("task", "show", id, "--data", to, "--tenant", "t_acme")
	}
	expect.True(t, len(have) != 0, "nothing is there")
	u.ok("task", "dispatch", "--data", to, "--tenant", "t_acme", "--kind", "exec.run", "--wait", "--input", `{"argv":["true"]}`)
}

func TestAKilledMoveToADatabaseLeavesOneOwnerAndIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database(t, "killed")
	u := filled(t)
	work := func(at string) (bool, string) {
		code, _, said := u.run("task", "dispatch", "--data", at, "--tenant", "t_acme", "--kind", "exec.run", "--input", `{"argv":["true"]}`)
		return code == 0, said
	}
	from, to := u.data(), dsn
	moves, kills := 0, 0
	for pause := 20 * time.Millisecond; moves < 2; pause += 110 * time.Millisecond {
		cmd := u.command("store", "copy", "--data", from, "--tenant", "t_acme", "--to", to)
		var said bytes.Buffer
		cmd.Stderr, cmd.Stdout = &said, &said
		expect.No(t, cmd.Start())
		killer := time.AfterFunc(pause, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		killer.Stop()
		if err == nil { // it was faster: back again
			moves++
			from, to = to, from
			pause = 20 * time.Millisecond * time.Duration(moves+1)
			continue
		}
		expect.Must(t, !cmd.ProcessState.Exited(), "the move failed: %v\n%s", err, said.String())
		kills++
		there, other := work(to)
		here, _ := work(from)
		switch {
		case here && there:
			t.Fatal("both take writes")
		case there: // killed after all of it
			moves++
			from, to = to, from
		case !here:
			out := u.ok("store", "copy", "--data", from, "--tenant", "t_acme", "--to", to)
			t.Logf("killed after %s: %s; %s", pause, other, out)
			ok, said := work(to)
			expect.Must(t, ok, "finished, and it takes no work: %s", said)
			moves++
			from, to = to, from
		}
		if other != "" && !there && here && !strings.Contains(other, "not whole") && !strings.Contains(other, "not found") && !strings.Contains(other, "has moved") {
			t.Errorf("half a copy said: %s", other)
		}
	}
	expect.True(t, kills >= 4, "only %d were killed", kills)
	t.Logf("%d kills, %d moves", kills, moves)
	u.ok("audit", "verify", "--data", from, "--tenant", "t_acme")
	u.ok("audit", "reconcile", "--data", from, "--tenant", "t_acme")
}

func TestADatabaseIsCheckedAndBackedUpToAFile(t *testing.T) {
	t.Parallel()
	pg := postgrestest.Start(t)
	dsn := pg.Database(t, "backup")
	u := filled(t)
	u.ok("store", "copy", "--tenant", "t_acme", "--to", dsn)
	u.ok("store", "copy", "--tenant", "t_other", "--to", dsn)
	out := u.ok("store", "check", "--data", dsn)
	expect.True(t, strings.Contains(out, "backup?host=") && strings.Contains(out, ": ok; ") && strings.Contains(out, "2 tenants"), "check: %s", out)
	for _, name := range []string{"alone.db", "beside.db"} {
		backup := filepath.Join(u.home, name)
		if name == "beside.db" {
			u.daemon("serve", "--data", dsn)
		}
		out := u.ok("store", "backup", backup, "--data", dsn)
		expect.True(t, strings.Contains(out, "with "+backup+".key") && strings.Contains(out, "with "+backup+".run/spill"), "backup: %s", out)
		if name == "alone.db" { // else its tasks run meanwhile
			equal(t, contents(t, dsn, "t_acme"), contents(t, backup, "t_acme"))
		}
		equal(t, contents(t, dsn, "t_other"), contents(t, backup, "t_other"))
		u.ok("store", "check", "--data", backup)
		u.ok("audit", "verify", "--data", backup, "--tenant", "t_acme")
		u.ok("audit", "reconcile", "--data", backup, "--tenant", "t_acme")
		code, _, said := u.run("store", "backup", backup, "--data", dsn)
		expect.True(t, code == 1 && strings.Contains(said, "exists already"), "over a file: exit %d, %s", code, said)
	}
	pg.SQL(t, "backup", "update kv set value = value || 'x' where (tenant, bucket, key) in (select tenant, bucket, key from kv where bucket = 'task' order by key limit 1)")
	if code, out, said := u.run("store", "check", "--data", dsn); code != 3 || !strings.Contains(out+said, "DAMAGED: 1 problems") || !strings.Contains(out+said, "t_acme/task") {
		t.Errorf("damaged: exit %d, %s%s", code, out, said)
	}
	code, _, said := u.run("store", "compact", "--data", dsn)
	expect.True(t, code != 0 && strings.Contains(said, "its own tools look after"), "compact: exit %d, %s", code, said)
}
