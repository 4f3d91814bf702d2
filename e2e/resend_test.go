package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/expect"
)

// asksAbout waits until a person is asked whether an agent's task is sent again, and
// gives the approval.
func (u *user) asksAbout(t *testing.T, task string) (approval string) {
	t.Helper()
	expect.Await(t, "question whether "+task+" is sent again", func() bool {
		_, _, _ = u.run("task", "wait", task, "--timeout", "1s") // an engine has to look
		for line := range strings.Lines(u.ok("approval", "list", "--open", "-o", "json")) {
			if field(line, "task_id") == task && field(line, "reason_code") == "agent.interrupted" {
				approval = field(line, "approval_id")
			}
		}
		return approval != ""
	})
	return approval
}

// TestAPromptThatTheEndCutsOffIsSentOnceMoreOnlyIfAPersonSaysSo: each time that the agent
// hears of a task it does something that counts. An orderly end is no other than a kill.
func TestAPromptThatTheEndCutsOffIsSentOnceMoreOnlyIfAPersonSaysSo(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	script := `while read -r task; do
	echo "$task" >>effects
	if test -e quick; then echo '{"type":"result","status":"succeeded","output":{}}'; continue; fi
	sleep 600
done
`
	expect.No(t, os.WriteFile(filepath.Join(u.home, "agent.sh"), []byte(script), 0o600))
	effects := func() int {
		data, _ := os.ReadFile(filepath.Join(u.home, "effects"))
		return strings.Count(string(data), "\n")
	}
	u.ok("agent", "create", "a", "--project", "p", "--", "sh", "agent.sh")
	cut := func(n int, by os.Signal) (task string) {
		cmd := u.command("agent", "assign", "a", "do it", "--wait")
		expect.No(t, cmd.Start())
		expect.Await(t, "effect", func() bool { return effects() == n })
		_ = cmd.Process.Signal(by)
		_ = cmd.Wait()
		return field(u.ok("task", "list", "-o", "json"), "task_id")
	}
	denied := cut(1, syscall.SIGTERM)
	u.ok("approval", "deny", u.asksAbout(t, denied), "--reason", "it is done")
	if code, out, _ := u.run("task", "wait", denied, "--timeout", patience.String(), "-o", "json"); code == 0 && field(out, "status") != "blocked" {
		t.Errorf("denied: exit %d, %s", code, out)
	}
	out := u.ok("task", "show", denied, "-o", "json")
	expect.True(t, field(out, "status") == "blocked", "denied: %s", out)
	expect.Is(t, effects(), 1, "effects of one task that was sent once")
	again := cut(2, os.Kill)
	approval := u.asksAbout(t, again)
	expect.Is(t, effects(), 2, "effects before anybody said so")
	expect.No(t, os.WriteFile(filepath.Join(u.home, "quick"), nil, 0o600))
	u.ok("approval", "approve", approval)
	u.ok("task", "wait", again, "--timeout", patience.String())
	out = u.ok("task", "show", again, "-o", "json")
	expect.True(t, field(out, "status") == "succeeded" && strings.Contains(out, `"attempt":0`), "approved: %s", out)
	expect.Is(t, effects(), 3, "effects of two tasks, one of them sent once more")
	u.ok("audit", "reconcile")
}
