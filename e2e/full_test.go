package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
)

// full lets no file of the engine grow past the data file's size, or that many bytes
// more, until room is called.
func (u *user) full(d *daemon, more ...uint64) (room func()) {
	u.t.Helper()
	info := expect.Of(os.Stat(u.data()))(u.t)
	var was unix.Rlimit
	limit := func(now, before *unix.Rlimit) {
		u.t.Helper()
		expect.No(u.t, unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_FSIZE, now, before))
	}
	limit(nil, &was)
	most := uint64(info.Size())
	for _, n := range more {
		most += n
	}
	limit(&unix.Rlimit{Cur: most, Max: was.Max}, nil)
	return func() { limit(&was, nil) }
}

// TestAFullDiskIsAState: an engine whose data file can't grow stays up, refuses
// writes with that reason, reads and stops, and goes on when there is space.
func TestAFullDiskIsAState(t *testing.T) {
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	u.ok("session", "create", "--name", "later")
	for agent, file := range map[string]string{"bob": "go", "amy": "never"} {
		u.ok("agent", "create", agent, "--project", "p", "--", "sh", "-c", "echo hello; until [ -e "+file+" ]; do sleep 0.05; done; echo bye")
	}
	d := u.daemon("serve", "--ssh", "127.0.0.1:0")
	waits := `{"argv":["sh","-c","echo begun; until [ -e $0 ]; do sleep 0.05; done; echo done","go"]}`
	dispatch := func(input string, more ...string) (int, string, string) {
		return u.run(append([]string{"task", "dispatch", "--kind", "exec.run", "--input", input, "-o", "json"}, more...)...)
	}
	_, out, _ := dispatch(waits)
	ends := field(out, "task_id")
	_, out, _ = dispatch(strings.Replace(waits, `"go"`, `"never"`, 1))
	frozen := field(out, "task_id")
	prompt := field(u.ok("agent", "assign", "bob", "work", "-o", "json"), "task_id")
	paused := field(u.ok("agent", "assign", "amy", "work", "-o", "json"), "task_id")
	all := []string{ends, frozen, prompt, paused}
	status := func(id string) string { return field(u.ok("task", "show", id, "-o", "json"), "status") }
	expect.Await(t, "running work", func() bool {
		return !slices.ContainsFunc(all, func(id string) bool { return status(id) != "running" })
	})

	room := u.full(d)
	large := `{"argv":["true","` + strings.Repeat("x", 60_000) + `"]}`
	code, stderr := 0, ""
	for i := 0; code == 0 && i < 200; i++ {
		code, _, stderr = dispatch(large, "--session", "later")
	}
	var refused struct {
		Error struct {
			Code    string
			Details struct {
				Path string
				Free *int64 `json:"free_bytes"`
			}
		}
	}
	if err := json.Unmarshal([]byte(stderr), &refused); err != nil || code != 3 || refused.Error.Code != "STORAGE_FULL" ||
		refused.Error.Details.Path != u.data() || refused.Error.Details.Free == nil {
		t.Fatalf("a write: exit %d %s (%v)", code, stderr, err)
	}
	code, _, stderr = u.run("session", "create")
	expect.True(t, code == 3 && strings.Contains(stderr, "the disk is full"), "a small write: exit %d %s", code, stderr)
	out = u.ok("tenant", "troubles", "-o", "json")
	expect.True(t, field(out, "component") == "store" && strings.Contains(out, "the disk is full"), "troubles: %s", out)
	if err := os.WriteFile(filepath.Join(u.home, "go"), nil, 0o600); err != nil { // its result has to wait
		t.Fatal(err)
	}
	expect.Has(t, u.ok("agent", "pause", "amy", "-o", "json"), `"paused":true`, "agent pause")
	out = u.ok("estop", "on", "--reason", "full", "-o", "json")
	expect.True(t, strings.Contains(out, `"on":true`) && !strings.Contains(out, "unrecorded"), "emergency stop: %s", out)
	for _, id := range all {
		expect.Is(t, status(id), "running", "while full", id, "is")
	}
	u.ok("agent", "list")
	u.ok("task", "list")
	u.ok("audit", "verify")

	room()
	expect.Await(t, "room", func() bool { code, _, _ := u.run("session", "create"); return code == 0 })
	u.ok("estop", "off", "--reason", "there is space")
	expect.Await(t, "results that waited", func() bool { return status(ends) == "succeeded" && status(prompt) == "succeeded" })
	expect.Has(t, u.ok("agent", "log", "bob"), "bye", "what the agent said while the disk was full is lost")
	u.ok("task", "cancel", frozen)
	u.ok("agent", "cancel", "amy")
	expect.Await(t, "end of the others", func() bool { return status(frozen) == "cancelled" && status(paused) == "cancelled" })
	for _, id := range all {
		expect.Has(t, u.ok("task", "show", id, "-o", "json"), `"attempt":0`, "an attempt was used")
	}
	out = u.ok("tenant", "troubles", "-o", "json")
	expect.True(t, !strings.Contains(out, "disk"), "troubles afterwards: %s", out)
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
}

// TestAnEngineEndsAndBeginsOnAFullDisk: what waits for room keeps it from
// neither, and the work goes on with the next engine.
func TestAnEngineEndsAndBeginsOnAFullDisk(t *testing.T) {
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	u.ok("session", "create", "--name", "later")
	u.ok("agent", "create", "bob", "--project", "p", "--", "sh", "-c", "until [ -e go ]; do sleep 0.05; done")
	d := u.daemon("serve", "--ssh", "127.0.0.1:0")
	id := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["sh","-c","until [ -e go ]; do sleep 0.05; done"]}`, "-o", "json"), "task_id")
	prompt := field(u.ok("agent", "assign", "bob", "wait", "-o", "json"), "task_id")
	status := func(id string) string { return field(u.ok("task", "show", id, "-o", "json"), "status") }
	expect.Await(t, "running work", func() bool { return status(id) == "running" && status(prompt) == "running" })
	u.full(d)
	large := `{"argv":["true","` + strings.Repeat("x", 60_000) + `"]}`
	for code := 0; code == 0; {
		code, _, _ = u.run("task", "dispatch", "--kind", "exec.run", "--input", large, "--session", "later")
	}
	expect.No(t, os.WriteFile(filepath.Join(u.home, "go"), nil, 0o600))
	expect.No(t, d.cmd.Process.Signal(unix.SIGTERM))
	expect.Of(d.cmd.Process.Wait())(t)

	info := expect.Of(os.Stat(u.data()))(t)
	self := *u
	self.program = "/bin/sh"
	d = self.daemon("-c", fmt.Sprintf(`ulimit -S -f %d; exec "$0" serve --ssh 127.0.0.1:0`, info.Size()/512), os.Args[0])
	expect.Has(t, u.ok("estop", "on", "--reason", "full", "-o", "json"), `"on":true`, "emergency stop")
	expect.No(t, unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}, nil))
	expect.Await(t, "room", func() bool { code, _, _ := u.run("session", "create"); return code == 0 })
	u.ok("estop", "off", "--reason", "there is space")
	// The end of the first engine could not be recorded: the prompt counts as
	// cut off, and is sent again only if a person says so.
	u.ok("approval", "approve", field(u.ok("task", "show", prompt, "-o", "json"), "approval_id"))
	for _, id := range []string{id, prompt} {
		expect.Await(t, "end of "+id, func() bool { return status(id) == "succeeded" })
	}
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
}

// TestALineThatWaitsEndsOnAFullDisk: within ten seconds and with the disk's own words,
// whether an engine runs or the line is one itself.
func TestALineThatWaitsEndsOnAFullDisk(t *testing.T) {
	t.Parallel()
	fills := `{"argv":["sh","-c","seq 1 500000; sleep 60"]}`
	ends := func(u *user, args ...string) {
		t.Helper()
		began := time.Now()
		code, _, stderr := u.run(args...)
		took := time.Since(began)
		expect.True(t, code == 3 && strings.Contains(stderr, "the disk is full") && took < 10*time.Second, "%q: exit %d after %s: %s", args, code, took, stderr)
	}
	u := newUser(t)
	u.ok("session", "create", "--name", "later")
	self := *u
	self.program = "/bin/sh"
	size := expect.Of(os.Stat(u.data()))(t).Size()
	ends(&self, "-c", fmt.Sprintf(`ulimit -S -f %d; exec %s "$@"`, size/512, u.built()), "sh", "task", "dispatch", "--kind", "exec.run", "--input", fills, "--wait")
	u.ok("audit", "verify")

	d := u.daemon()
	waits := `{"argv":["sh","-c","until [ -e full ]; do sleep 0.1; done; seq 1 500000; sleep 60"]}`
	id := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", waits, "-o", "json"), "task_id")
	u.ok("task", "wait", id, "--status", "running")
	defer u.full(d, 700_000)() // room for some commits of the lines, and not for all
	expect.No(t, os.WriteFile(filepath.Join(u.home, "full"), nil, 0o600))
	var both sync.WaitGroup
	both.Go(func() { ends(u, "task", "wait", id) })
	both.Go(func() { ends(u, "task", "log", id, "--follow") })
	both.Wait()
	u.ok("task", "show", id)
}
