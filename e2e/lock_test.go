package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

func TestShortCommandsAtOnceWaitForEachOther(t *testing.T) {
	u := newUser(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			code, out, stderr := u.run("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["true"]}`)
			expect.True(t, code == 0, "exit %d %s%s", code, out, stderr)
		})
	}
	wg.Wait()
	expect.Is(t, strings.Count(u.ok("task", "list", "-o", "json"), "\n"), 6, "tasks, want 6")
	u.ok("audit", "verify")
}

// TestAnEngineGetsInBetweenShortCommands: neither they nor it are refused.
func TestAnEngineGetsInBetweenShortCommands(t *testing.T) {
	u := newUser(t)
	u.ok("session", "create")
	var wg sync.WaitGroup
	defer wg.Wait()
	over := make(chan struct{})
	defer close(over)
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				code, out, stderr := u.run("session", "create")
				expect.True(t, code == 0, "exit %d %s%s", code, out, stderr)
			}
		})
	}
	u.daemon()
}

func TestServeSaysWhichEngineHasTheFile(t *testing.T) {
	u := newUser(t)
	d := u.daemon()
	code, _, stderr := u.run("serve")
	want := fmt.Sprintf("engine pid %d (swarmdeck serve) has %s since 20", d.cmd.Process.Pid, u.data())
	expect.True(t, code == 3 && strings.Contains(stderr, want), "exit %d %s; want %q", code, stderr, want)
	code, _, stderr = u.run("serve", "-o", "json")
	expect.True(t, code == 3 && field(stderr, "code") == "UNAVAILABLE", "exit %d %s", code, stderr)
}

func TestServeWaitsForAShortCommandToLetGoOfTheFile(t *testing.T) {
	u := newUser(t)
	u.ok("session", "create")
	owner := expect.Of(store.Open(u.data(), store.Options{}))(t)
	cmd := u.command("serve")
	said := expect.Of(cmd.StderrPipe())(t)
	expect.No(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(said)
	expect.True(t, lines.Scan() && strings.Contains(lines.Text(), "waiting up to 30s"), "it says %q", lines.Text())
	expect.No(t, owner.Close())
	expect.True(t, lines.Scan() && strings.HasPrefix(lines.Text(), "serving "), "it says %q", lines.Text())
}

func TestATaskRunsWhereItWasDispatched(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	home, there := u.home, filepath.Join(u.home, "there")
	expect.No(t, os.MkdirAll(filepath.Join(there, "sub"), 0o700))
	u.ok("session", "list")
	for input, want := range map[string]string{
		`{"argv":["pwd"]}`:             there,
		`{"argv":["pwd"],"dir":"sub"}`: filepath.Join(there, "sub"),
		`{"argv":["pwd"],"dir":"/"}`:   "/",
	} {
		u.home = there
		id := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", input, "-o", "json"), "task_id")
		u.home = home
		u.ok("task", "wait", id, "--timeout", patience.String())
		expect.Is(t, field(u.ok("result", "show", id, "-o", "json"), "stdout"), want+`\n`, input, "ran in", want)
	}
}
