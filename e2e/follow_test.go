package e2e

import (
	"bufio"
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

// lines runs a command that goes on, and gives what it prints.
func (u *user) lines(t *testing.T, args ...string) (cmd *exec.Cmd, printed <-chan string) {
	t.Helper()
	cmd = u.command(args...)
	out := expect.Of(cmd.StdoutPipe())(t)
	cmd.Stderr = t.Output()
	expect.No(t, cmd.Start())
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, lines
}

// has waits for a line that holds a text.
func has(t *testing.T, lines <-chan string, text string) {
	t.Helper()
	for end := time.After(patience); ; {
		select {
		case line, open := <-lines:
			expect.Must(t, open, "it ended before it said %q", text)
			if strings.Contains(line, text) {
				return
			}
		case <-end:
			t.Fatalf("it does not say %q", text)
		}
	}
}

// TestAStandbyOfADatabaseIsWatched has a machine that reaches the standby alone.
func TestAStandbyOfADatabaseIsWatched(t *testing.T) {
	t.Parallel()
	primary := postgrestest.Start(t)
	u := newUser(t)
	u.onDatabase(t, primary.Database(t, "watched"), nil)
	u.ok("tenant", "create", "t_acme")
	standby := primary.Standby(t)
	_, end := u.joined(t)
	watcher := newUser(t)
	watcher.onDatabase(t, standby.DSN("watched"), nil)
	u.ok("session", "create")
	primary.CaughtUp(t, standby)
	out := watcher.ok("session", "list", "-o", "json")
	expect.True(t, strings.Count(out, "session_id") == 1, "it lists %s", out)
	_, tail := watcher.lines(t, "bus", "tail", "sys.>", "--follow")
	has(t, tail, "sys.session.created")
	began := time.Now()
	task := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["sh","-c","echo first; until [ -e go ]; do sleep 0.05; done; echo last"]}`, "-o", "json"), "task_id")
	has(t, tail, "sys.task.")
	t.Logf("a task is seen %s after it was asked for", time.Since(began))
	log, said := watcher.lines(t, "task", "log", task, "--follow")
	wait, _ := watcher.lines(t, "--read-only", "task", "wait", task)
	has(t, said, "first")
	expect.No(t, os.WriteFile(filepath.Join(u.home, "go"), nil, 0o600))
	has(t, said, "last")
	expect.No(t, log.Wait(), "the log of a task that is over")
	expect.No(t, wait.Wait(), "the wait for a task that is over")
	for _, write := range []string{"session create", "bus consume x sys.> --follow", "serve"} {
		code, out, stderr := watcher.run(strings.Fields(write)...)
		expect.True(t, code == 3 && out == "" && strings.Count(stderr, "\n") == 1 && strings.Contains(stderr, "is a standby: it can only be read"),
			"%s: exit %d\n%s%s", write, code, out, stderr)
	}
	end(unix.SIGTERM)
}

// TestALineOnADatabaseFollowsWithoutTheEngineThatHasItsTenant has an engine that lets nobody in.
func TestALineOnADatabaseFollowsWithoutTheEngineThatHasItsTenant(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database(t, "alone")
	u := newUser(t)
	u.onDatabase(t, dsn, nil)
	u.ok("tenant", "create", "t_acme")
	u.daemon()
	u.ok("session", "create")
	watcher := newUser(t)
	watcher.onDatabase(t, dsn, u)
	_, tail := watcher.lines(t, "bus", "tail", "sys.>", "--follow")
	has(t, tail, "sys.session.created")
	u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["true"]}`)
	has(t, tail, "sys.task.succeeded")
	// Who watches keeps nobody from the data.
	code, _, stderr := watcher.run("session", "create")
	expect.True(t, code == 3 && (strings.Contains(stderr, "lets no other in") || strings.Contains(stderr, ", has it")), "exit %d: %s", code, stderr)
}
