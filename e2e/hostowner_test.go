package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// ownedHost is a host that two engines on one database reach, and an agent there whose
// tenant the first of them has. Its process writes down each prompt, a beat while it
// lives, and whether another one is beside it.
type ownedHost struct {
	t             *testing.T
	first, second *user
	had           *daemon // the engine of first
	dir           string  // of the agent, on the host
}

func newOwnedHost(t *testing.T, name string) *ownedHost {
	t.Helper()
	dsn := postgrestest.Start(t).Database(t, name)
	o := &ownedHost{t: t, first: newUser(t), second: newUser(t)}
	o.first.program = o.first.built()
	o.second.program = o.first.program
	addr := o.first.sshd()
	address := o.first.sshAt(addr)
	o.second.sshAt(addr)
	o.first.onDatabase(t, dsn, nil)
	o.first.ok("tenant", "create", "t_acme")
	o.second.onDatabase(t, dsn, o.first)
	o.had = o.first.daemon("serve", "--ssh", "127.0.0.1:0")
	o.first.ok("host", "add", "box", address)
	expect.Await(t, "the host is up", func() bool { return strings.Contains(o.first.ok("host", "show", "box", "-o", "json"), `"state":"up"`) })
	line := `exec 9>>own; flock -n 9 || echo two of them >>got
while :; do echo x >>beats; sleep 0.02; done 9>&- & # of ` + o.first.home + `
while read line; do echo "$line" >>got; echo began; sleep 2; echo '{"type":"result","status":"succeeded","output":{}}'; done`
	o.first.ok("agent", "create", "far", "--project", "p", "--host", "box", "--", "bash", "-c", line)
	expect.Await(t, "the agent is idle", func() bool {
		return strings.Contains(o.first.ok("agent", "show", "far", "-o", "json"), `"status":"idle"`)
	})
	return o
}

// work gives the agent a prompt that it is at work on when work returns.
func (o *ownedHost) work(u *user, text string) (task string) {
	o.t.Helper()
	expect.Await(o.t, "turn for "+text, func() bool {
		code, out, _ := u.run("agent", "assign", "far", text, "-o", "json")
		task = field(out, "task_id")
		return code == 0
	})
	expect.Await(o.t, "work on "+text, func() bool { return o.given(text) > 0 })
	return task
}

// read is a file of the agent's directory on the host.
func (o *ownedHost) read(name string) string {
	if o.dir == "" {
		found, _ := filepath.Glob(filepath.Join(o.first.home, ".cache/swarmdeck/keeper-*/agents/far/work"))
		if len(found) == 0 {
			return ""
		}
		o.dir = found[0]
		expect.Must(o.t, len(found) <= 1, "the host has several places of one agent: %q", found)
	}
	data, _ := os.ReadFile(filepath.Join(o.dir, name))
	return string(data)
}

func (o *ownedHost) given(text string) (times int) {
	for line := range strings.Lines(o.read("got")) {
		if strings.Contains(line, text) {
			times++
		}
	}
	return times
}

// ended waits for the end of a task, and has its prompt given again if somebody asks.
func (o *ownedHost) ended(u *user, task string) (status string) {
	o.t.Helper()
	expect.Await(o.t, "the end of "+task, func() bool {
		code, out, _ := u.run("task", "show", task, "-o", "json")
		if status = field(out, "status"); code != 0 {
			return false
		}
		if field(out, "waiting") == "approval" {
			for line := range strings.Lines(u.ok("approval", "list", "--open", "-o", "json")) {
				if field(line, "task_id") == task {
					u.ok("approval", "approve", field(line, "approval_id"), "--reason", "again")
				}
			}
		}
		return slices.Contains([]string{"succeeded", "failed", "cancelled", "blocked"}, status)
	})
	return status
}

// over ends the test: all is as it should be.
func (o *ownedHost) over() {
	o.t.Helper()
	if strings.Contains(o.read("got"), "two of them") {
		o.t.Errorf("two processes of one agent were there at once:\n%s", o.read("got"))
	}
	o.second.ok("agent", "delete", "far", "--yes")
	o.second.ok("host", "remove", "box")
	expect.Await(o.t, "no keeper is left", func() bool { return len(o.first.keepers("")) == 0 })
	_, err := os.Stat(filepath.Join(o.first.home, ".cache/swarmdeck"))
	expect.True(o.t, os.IsNotExist(err), "files are left there: %v", err)
	o.second.ok("audit", "verify")
	o.second.ok("audit", "reconcile")
}

func TestAKilledOwnersAgentOnAHostIsTheNextOwners(t *testing.T) {
	t.Parallel()
	o := newOwnedHost(t, "hostkilled")
	o.second.daemon("serve", "--ssh", "127.0.0.1:0")
	task := o.work(o.first, "first prompt.")
	_ = o.had.cmd.Process.Kill()
	_ = o.had.cmd.Wait()
	began := time.Now()
	status := o.ended(o.second, task)
	t.Logf("the task is %s %s after its owner was killed; it was given %d times", status, time.Since(began).Round(time.Millisecond), o.given("first prompt."))
	if status != "succeeded" || o.given("first prompt.") != 2 {
		t.Errorf("%s:\n%s", status, o.read("got"))
	}
	expect.Has(t, o.second.ok("task", "log", task, "-o", "json"), "of the former engine's run: it was ended on its host", "the task's log")
	if next := o.ended(o.second, o.work(o.second, "second prompt.")); next != "succeeded" || o.given("second prompt.") != 1 {
		t.Errorf("%s:\n%s", next, o.read("got"))
	}
	o.over()
}

func TestAStoppedOwnersAgentOnAHostStandsStillAndIsTheNextOwners(t *testing.T) {
	t.Parallel()
	o := newOwnedHost(t, "hoststopped")
	task := o.work(o.first, "first prompt.")
	beats := func() int { return len(o.read("beats")) }
	expect.Await(t, "beats", func() bool { return beats() > 20 })
	expect.No(t, o.had.cmd.Process.Signal(syscall.SIGSTOP))
	defer func() { _ = o.had.cmd.Process.Signal(syscall.SIGCONT) }()
	began := time.Now()
	was := expect.Rests(t, "a stand-still by the lease alone", beats)
	t.Logf("its processes stand still within %s", time.Since(began).Round(time.Millisecond))
	o.second.daemon("serve", "--ssh", "127.0.0.1:0")
	expect.Await(t, "the host is the next owner's", func() bool {
		code, out, _ := o.second.run("host", "show", "box", "-o", "json")
		return code == 0 && strings.Contains(out, `"state":"up"`)
	})
	if now := beats(); now != was && o.given("first prompt.") == 1 {
		t.Errorf("what the former owner began wrote %d lines after it stood still", (now-was)/2)
	}
	if status := o.ended(o.second, task); status != "succeeded" || o.given("first prompt.") != 2 {
		t.Errorf("%s:\n%s", status, o.read("got"))
	}
	second := o.work(o.second, "second prompt.")
	expect.No(t, o.had.cmd.Process.Signal(syscall.SIGCONT))
	if status := o.ended(o.second, second); status != "succeeded" || o.given("second prompt.") != 1 {
		t.Errorf("when the former owner was back: %s\n%s", status, o.read("got"))
	}
	expect.Has(t, o.second.ok("host", "show", "box", "-o", "json"), `"state":"up"`, "when the former owner was back")
	o.over()
}
