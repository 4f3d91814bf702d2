package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/expect"
)

// deaf starts the engine by a command, and when its work is under way has it hear
// nothing of what the work says until it is killed.
func (u *user) deaf(t *testing.T, args ...string) {
	t.Helper()
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(filepath.Join(u.home, name)); return err == nil }
	}
	touch := func(name string) {
		expect.No(t, os.WriteFile(filepath.Join(u.home, name), nil, 0o600))
	}
	cmd := u.command(args...)
	expect.No(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	expect.Await(t, "process", there("up"))
	expect.No(t, cmd.Process.Signal(syscall.SIGSTOP))
	var ws syscall.WaitStatus
	_, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil)
	expect.Must(t, err == nil && ws.Stopped(), "the engine is not stopped: %v", err)
	touch("go")
	expect.Await(t, "output", there("said"))
	touch("again")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// former are the lines of a log that are of the former engine's run.
func former(log string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.HasPrefix(field(line, "source"), "former engine, run ") {
			lines = append(lines, field(line, "level")+" "+field(line, "message"))
		}
	}
	return lines
}

// tells reports lines that are not as wanted, by the beginnings of each.
func tells(t *testing.T, log string, want ...string) {
	t.Helper()
	lines := former(log)
	for i, line := range lines {
		expect.Must(t, i < len(want) && strings.HasPrefix(line, want[i]), "line %d: %q\n%s", i, line, log)
	}
	expect.Is(t, len(lines), len(want), "lines of the former run", log)
}

func TestATaskIsToldWhatTheDeadEngineHadNotRead(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	script := `test -e again && exit 0
echo >up
until test -e go; do sleep 0.01; done
echo unread
echo "it broke" >&2
echo >said
exit 7
`
	expect.No(t, os.WriteFile(filepath.Join(u.home, "run.sh"), []byte(script), 0o600))
	u.deaf(t, "task", "dispatch", "--kind", "exec.run", "--wait", "--input", `{"argv":["sh","run.sh"]}`)
	var kept []string
	expect.Await(t, "kept output", func() bool { kept, _ = filepath.Glob(u.data() + ".run/cells/*.json"); return len(kept) == 1 })
	data, err := os.ReadFile(kept[0])
	info, bad := os.Stat(kept[0])
	expect.True(t, bad == nil && err == nil && info.Mode().Perm() == 0o600, "the file is not private: %v, %v, %v", info, bad, err)
	id := field(u.ok("task", "list", "-o", "json"), "task_id")
	for range 2 { // the second engine finds it again, as if the first had been killed before it was removed
		u.ok("task", "wait", id, "--timeout", patience.String())
		log := u.ok("task", "log", id, "-o", "json")
		tells(t, log, "WARN the engine died at ", "INFO unread", "WARN it broke", "WARN of the former engine's run: it ") // exited, or was frozen before that
		left, _ := os.ReadDir(u.data() + ".run/cells")
		expect.True(t, len(left) == 0, "left: %v", left)
		expect.No(t, os.WriteFile(kept[0], data, 0o600))
		u.ok("task", "dispatch", "--kind", "exec.run", "--wait", "--input", `{"argv":["true"]}`)
	}
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
}

func TestAnAgentsTaskIsToldWhatTheDeadEngineHadNotRead(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	script := `read -r task
if test -e again; then echo '{"type":"result","status":"succeeded","output":{}}'; exit 0; fi
echo >up
until test -e go; do sleep 0.01; done
echo '{"type":"log","level":"DEBUG","message":"thinking"}'
echo plain
echo complaint >&2
echo >said
sleep 600
`
	expect.No(t, os.WriteFile(filepath.Join(u.home, "agent.sh"), []byte(script), 0o600))
	u.ok("agent", "create", "a", "--project", "p", "--role", "r", "--", "sh", "agent.sh")
	u.deaf(t, "agent", "assign", "a", "go on", "--wait")
	id := field(u.ok("task", "list", "-o", "json"), "task_id")
	u.ok("approval", "approve", u.asksAbout(t, id))
	u.ok("task", "wait", id, "--timeout", patience.String())
	want := []string{"WARN the engine died at ", "DEBUG thinking", "INFO plain", "WARN complaint", "WARN of the former engine's run: it was frozen, and ended at "}
	tells(t, u.ok("task", "log", id, "-o", "json"), want...)
	log := slices.Collect(strings.Lines(u.ok("agent", "log", "a", "-o", "json", "--page-size", "50")))
	slices.Reverse(log) // the newest line is the first
	tells(t, strings.Join(log, ""), want...)
}
