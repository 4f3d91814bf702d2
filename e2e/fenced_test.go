package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// onDatabase has a user work on a database, with the keys of who did so before.
func (u *user) onDatabase(t *testing.T, dsn string, before *user) {
	t.Helper()
	path := filepath.Join(u.home, "data")
	u.env = append(u.env, "SWARMDECK_DATA="+path)
	expect.No(t, os.WriteFile(path, []byte(dsn+"\n"), 0o600))
	if before == nil {
		return
	}
	key := expect.Of(os.ReadFile(filepath.Join(before.home, "data.key")))(t)
	expect.No(t, os.WriteFile(path+".key", key, 0o600))
}

func TestTheRunsOfAStoppedEngineOnADatabaseStandStillBeforeAnotherHasItsTenant(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database(t, "fenced")
	u := newUser(t)
	u.onDatabase(t, dsn, nil)
	u.ok("agent", "create", "ticker", "--project", "P", "--", "sh", "-c", "read x; while :; do echo x >>ticks; sleep 0.01; done")
	tokens := filepath.Join(u.home, "tokens.yaml")
	expect.No(t, os.WriteFile(tokens, []byte("tokens: [{operator: alice, role: operator, token: the-token-of-alice}]\n"), 0o600))
	said := &bytes.Buffer{}
	engine := u.command("mcp", "--http", "127.0.0.1:0", "--tokens", tokens)
	engine.Stderr = said
	expect.No(t, engine.Start())
	ended := make(chan error, 1)
	go func() { ended <- engine.Wait() }()
	t.Cleanup(func() { _ = engine.Process.Kill(); <-ended })
	expect.Await(t, "engine", func() bool { code, _, _ := u.run("agent", "assign", "ticker", "tick"); return code == 0 })
	ticks := func() int {
		data, _ := os.ReadFile(filepath.Join(u.home, "ticks"))
		return len(data)
	}
	expect.Await(t, "work", func() bool { return ticks() > 100 })

	expect.No(t, engine.Process.Signal(unix.SIGSTOP))
	other := newUser(t)
	other.onDatabase(t, dsn, u)
	other.ok("agent", "create", "heir", "--project", "P", "--", "sh", "-c", "read x") // waits for the lease
	still := ticks()
	expect.StillFor(t, time.Second, ticks, "a run of the former owner wrote after the tenant was taken")
	expect.No(t, engine.Process.Signal(unix.SIGCONT))
	var err error
	select {
	case err = <-ended:
		ended <- err
	case <-time.After(patience):
		_ = engine.Process.Kill()
		ended <- <-ended
		t.Fatalf("the former owner goes on: %s", said)
	}
	expect.True(t, engine.ProcessState.ExitCode() == 3 && strings.Contains(said.String(), "newer owner"), "%v\n%s", err, said)
	if now := ticks(); now != still {
		t.Errorf("a run of the former owner wrote %d lines when it woke", (now-still)/2)
	}
	out, err := exec.Command("pgrep", "-f", u.home).CombinedOutput()
	expect.True(t, err != nil, "still there: %s", out)
	other.ok("audit", "verify")
	other.ok("audit", "reconcile")
}
