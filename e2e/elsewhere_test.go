package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// TestANewOwnerOnADatabaseSaysWhatLiesOnAnotherMachine has a second machine take a tenant over whose
// first one is gone with its disk, and then give it back.
func TestANewOwnerOnADatabaseSaysWhatLiesOnAnotherMachine(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database(t, "elsewhere")
	first, second := newUser(t), newUser(t)
	first.onDatabase(t, dsn, nil)
	first.ok("tenant", "create", "t_acme")
	second.onDatabase(t, dsn, first)
	plain := filepath.Join(first.home, "plain")
	for _, u := range []*user{first, second} {
		proj := filepath.Join(u.home, "proj")
		for _, dir := range []string{proj, filepath.Join(u.home, "plain")} {
			expect.No(t, os.Mkdir(dir, 0o755))
		}
		out, err := exec.Command("sh", "-c", `cd "$0" && git init -q -b main . && echo one >a && git add a && git -c user.name=a -c user.email=a@b.invalid commit -qm one`, proj).CombinedOutput()
		expect.Must(t, err == nil, "%v: %s", err, out)
	}
	has := func(u *user, what string, args ...string) {
		t.Helper()
		code, out, errs := u.run(args...)
		expect.True(t, strings.Contains(out+errs, what), "%v: exit %d, and no word of %q: %s%s", args, code, what, out, errs)
	}
	stop := func(d *daemon) {
		_ = d.cmd.Process.Signal(unix.SIGTERM)
		_ = d.cmd.Wait()
	}
	idle := func(u *user, agent string) {
		t.Helper()
		expect.Await(t, agent+" is idle", func() bool { return strings.Contains(u.ok("agent", "show", agent, "-o", "json"), `"status":"idle"`) })
	}
	worker := `while read l; do until [ ! -e wait ] || [ -e go ]; do sleep 0.05; done; echo x >>work; echo '{"type":"result","status":"succeeded","output":{}}'; done`
	treed := func(u *user) {
		u.ok("agent", "create", "treed", "--project", "p", "--tree", "--dir", filepath.Join(u.home, "proj"), "--shell", worker)
		idle(u, "treed")
		u.ok("agent", "assign", "treed", "work", "--wait")
	}
	had := first.daemon()
	treed(first)
	expect.No(t, os.WriteFile(filepath.Join(plain, "wait"), nil, 0o600))
	first.ok("agent", "create", "plain", "--project", "p", "--dir", plain, "--shell", worker)
	idle(first, "plain")
	id := field(first.ok("agent", "assign", "plain", "work", "-o", "json"), "task_id")
	expect.Await(t, "work", func() bool {
		return strings.Contains(first.ok("agent", "show", "plain", "-o", "json"), `"status":"busy"`)
	})
	has(second, `"status":"busy"`, "--read-only", "agent", "list", "-o", "json")
	expect.No(t, os.WriteFile(filepath.Join(plain, "go"), nil, 0o600))
	first.ok("task", "wait", id)
	spilled := field(first.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["sh","-c","yes | head -c 3000000"]}`, "--wait", "-o", "json"), "task_id")
	resource := field(first.ok("dag", "resource", "list", "--agent", "plain", "-o", "json"), "id")
	kept := field(first.ok("dag", "resource", "snapshot", resource, "-o", "json"), "id")
	stop(had)

	away := first.home + "-away"
	expect.No(t, os.Rename(first.home, away))
	took := second.daemon()
	const gone = "not reachable from here"
	for _, line := range []string{
		"review show treed", "agent diff treed", "review accept treed", "review update treed", "review file treed a", "agent delete treed --yes",
		"dag resource probe " + resource, "dag resource snapshot " + resource, "dag resource restore " + kept + " --to " + filepath.Join(second.home, "back"),
	} {
		has(second, gone, strings.Fields(line)...)
	}
	expect.Await(t, "why an agent can't be opened", func() bool { return strings.Contains(second.ok("agent", "show", "treed"), gone) })
	has(second, `"away":`, "review", "list", "-o", "json")
	for _, door := range [][]string{{"tenant", "troubles"}, {"doctor"}} {
		has(second, "the trees of treed lie on", door...)
		has(second, "snapshots of what agents work on are kept on", door...)
	}
	has(second, `"spill_place":`, "result", "show", spilled, "-o", "json")
	second.ok("audit", "reconcile") // what it can't see is no difference
	has(second, `"probed":{"status":"unknown"}`, "dag", "resource", "show", resource, "-o", "json")

	// Another agent of that name works at the new owner, and is not taken for the old one.
	second.ok("agent", "delete", "treed", "--yes", "--discard")
	out := second.ok("tenant", "troubles")
	expect.True(t, !strings.Contains(out, "treed"), "an agent that was deleted is lacking: %s", out)
	treed(second)
	has(second, `"changes":[{"path":"work"`, "review", "show", "treed", "-o", "json")
	stop(took)
	expect.No(t, os.Rename(away, first.home))
	first.daemon()
	has(first, gone, "review", "show", "treed")
	first.ok("dag", "resource", "restore", kept, "--to", filepath.Join(first.home, "back"))
	idle(first, "plain")
	first.ok("agent", "assign", "plain", "again", "--wait")
	first.ok("audit", "reconcile")
	first.ok("audit", "verify")
}
