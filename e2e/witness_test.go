package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/expect"
)

// copyFile copies a file as whoever has the machine would.
func (u *user) copyFile(to, from string) {
	u.t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	expect.No(u.t, err)
}

func TestAnExchangedKeyIsToldAtOpenAndByVerifyForEver(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	key := u.data() + ".key"
	u.ok("session", "create")
	u.copyFile(filepath.Join(u.home, "old.key"), key)
	if code, out, stderr := u.run("audit", "key", "rotate"); code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	u.ok("session", "create")
	out := u.ok("audit", "verify")
	expect.True(t, strings.Contains(out, "from event 4 on, signed by ") && strings.Contains(out, "from event 2 to 3, the first"), "%v", out)
	u.copyFile(key, filepath.Join(u.home, "old.key"))
	const want = "was not signed by the key before it"
	for _, line := range [][]string{{"session", "list"}, {"session", "create"}, {"audit", "key", "rotate"}, {"session", "create"}} {
		if code, _, stderr := u.run(line...); code != 0 || !strings.Contains(stderr, "swarmdeck: warning: audit log of t_default: signing key ") || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d: %s", line, code, stderr)
		}
	}
	code, out, _ := u.run("audit", "verify")
	expect.True(t, code == 1 && strings.Count(out, want) == 1, "verify: exit %d: %s", code, out)
	out = u.ok("audit", "key", "show")
	expect.True(t, strings.Count(out, "UNSIGNED") == 1, "%v", out)
	code, out, _ = u.run("doctor", "-o", "json")
	expect.True(t, code == 1 && strings.Contains(out, want), "doctor: exit %d: %s", code, out)
}

func TestAnOldCopyOfTheDataFileIsFoundByItsWitness(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	kept, early := filepath.Join(u.home, "kept.log"), filepath.Join(u.home, "early.db")
	u.ok("session", "create")
	u.copyFile(early, u.data())
	u.copyFile(early+".key", u.data()+".key")
	u.ok("audit", "witness", "add", kept, "--every", "1s")
	u.ok("audit", "witness", "add", "git", kept+".git", "--every", "1s")
	d := u.daemon()
	expect.Await(t, "the file", func() bool { b, _ := os.ReadFile(kept); return strings.Contains(string(b), "swarmdeck/t_default") })
	u.ok("session", "create")
	expect.No(t, d.cmd.Process.Signal(syscall.SIGTERM))
	_ = d.cmd.Wait()
	out := u.ok("audit", "verify")
	expect.True(t, !strings.Contains(out, "put back"), "%v", out)
	expect.Has(t, u.ok("audit", "verify", "--witness", kept), kept)

	u.copyFile(u.data(), early)
	u.copyFile(u.data()+".key", early+".key")
	u.ok("audit", "verify") // nothing in the file itself shows it
	for _, want := range []string{"the log was put back to an earlier state", "the log was rewritten, or put back to an earlier state and continued"} {
		code, out, _ := u.run("audit", "verify", "--witness", kept)
		expect.True(t, code == 1 && strings.Contains(out, "witness "+kept+": line ") && strings.Contains(out, want), "exit %d, want %s: %s", code, want, out)
		for range 9 {
			u.ok("session", "create")
		}
	}
}
