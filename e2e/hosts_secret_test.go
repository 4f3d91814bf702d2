package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/expect"
)

// onHosts is what the host's side of this user has on its disk, or open without a
// name there, and how its processes were called.
func (u *user) onHosts() (all []byte) {
	u.t.Helper()
	err := filepath.WalkDir(filepath.Join(u.home, ".cache", "swarmdeck"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if len(text) < 16<<20 { // not the program
			all = append(all, text...)
		}
		return err
	})
	expect.No(u.t, err)
	for _, pid := range u.keepers("") {
		open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, path := range open {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				text, _ := os.ReadFile(path)
				all = append(all, text...)
			}
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		all = append(all, line...)
	}
	return all
}

// TestAHostHoldsSecretsInMemoryAlone has an agent print what it was given while the link
// is away, so that the host keeps it.
func TestAHostHoldsSecretsInMemoryAlone(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.program = u.built()
	address := u.sshTo()
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	u.ok("host", "add", "box", address)
	values := []string{"Canary/one+two&3-of-this-host", "sk-clearHostCanary0123456789"}
	given := filepath.Join(t.TempDir(), "value")
	expect.No(t, os.WriteFile(given, []byte(values[0]), 0o600))
	u.ok("secret", "set", "ONE", "--from-file", given)
	expect.Await(t, "the host is up", func() bool {
		return strings.Contains(u.ok("host", "show", "box", "-o", "json"), `"state":"up"`)
	})
	line := `while read line; do echo began; while ! [ -e go ]; do sleep 0.1; done
i=0; while [ $i -lt 500 ]; do i=$((i+1)); echo "$i $V $API_KEY"; echo "$V" >&2; done
echo '{"type":"result","status":"succeeded","output":{"v":"'$(printf %s "$V$API_KEY" | sha256sum | cut -c1-64)'"}}'; touch done; done`
	u.ok("agent", "create", "far", "--project", "p", "--host", "box", "--env", "V=@ONE", "--env", "API_KEY="+values[1], "--shell", line)
	id := field(u.ok("agent", "assign", "far", "do it", "-o", "json"), "task_id")
	expect.Await(t, "it has begun", func() bool { return strings.Contains(u.ok("agent", "log", "far", "--page-size", "100"), "began") })
	work, _ := filepath.Glob(filepath.Join(u.home, ".cache/swarmdeck/keeper-*/agents/far/work"))
	expect.Must(t, len(work) == 1, "%v", work)
	_ = syscall.Kill(d.cmd.Process.Pid, syscall.SIGSTOP) // nothing comes back for the link
	for _, pid := range u.keepers("link") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	expect.No(t, os.WriteFile(filepath.Join(work[0], "go"), nil, 0o600))
	expect.Await(t, "it has printed", func() bool { _, err := os.Stat(filepath.Join(work[0], "done")); return err == nil })
	disk := u.onHosts()
	_ = syscall.Kill(d.cmd.Process.Pid, syscall.SIGCONT)
	expect.True(t, len(disk) >= 40_000, "only %d bytes were kept there", len(disk))
	u.ok("task", "wait", id, "--timeout", patience.String())
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(values[0]+values[1])))
	expect.Has(t, u.ok("result", "show", id, "-o", "json"), want, "the agent has other values:")
	log := u.ok("agent", "log", "far", "--page-size", "100")
	expect.True(t, strings.Count(log, "[secret") >= 100, "%.2000s", log)
	shown := log + u.ok("agent", "show", "far", "-o", "json") + u.ok("host", "show", "box", "-o", "json") + u.ok("audit", "list", "-o", "json", "--page-size", "100")
	for _, v := range values {
		for _, spelled := range spelled(v) {
			expect.True(t, !bytes.Contains(disk, spelled), "the host's disk or a command line has %s", v)
			expect.True(t, !strings.Contains(shown, string(spelled)), "shown: %s", v)
		}
	}
	u.ok("agent", "delete", "far", "--yes")
	u.ok("host", "remove", "box")
}
