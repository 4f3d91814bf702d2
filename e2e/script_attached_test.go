package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// TestAScriptRunsAtTheEngineThatHasTheFile plays one with each kind of word while
// a daemon has the data file.
func TestAScriptRunsAtTheEngineThatHasTheFile(t *testing.T) {
	u := newPlayer(t)
	u.ok("tenant", "create", "t_acme")
	u.ok("tenant", "create", "t_beta")
	d := u.daemon()
	id := field(d.ok("--tenant", "t_acme", "task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["true"]}`, "-o", "json"), "task_id")
	expect.No(t, os.WriteFile(filepath.Join(u.home, "in.json"), []byte(`{"argv":["echo","from a file"]}`), 0o600))
	script := `# a task that was there before
task show $THERE
# programs, files and the input are this side's
exec echo {"argv":["echo","from stdin"]}
cp stdout input
stdin input
task dispatch --kind exec.run --input - -o json
capture ID task_id
await task $ID status=succeeded
stdout succeeded
result show $ID
stdout 'from stdin'
task dispatch --kind exec.run --input @$HERE/in.json --wait
! task show nonsense
stderr 'is not allowed'
exit 2
# the screen
cockpit 80x24
await screen /fleet/
key 2
await screen /succeeded/
cell 1,1 role=header
! screen /no such words/
snap tasks
# another process is the same
exec swarmdeck task list
stdout succeeded
`
	script = strings.ReplaceAll(script, "$THERE", id)
	for name, env := range map[string][]string{
		"by the environment": {"SWARMDECK_DATA=" + u.data(), "SWARMDECK_TENANT=t_acme"},
		"by flags":           nil,
	} {
		t.Run(name, func(t *testing.T) {
			p := *u
			p.t, p.env = t, append(u.env[:len(u.env):len(u.env)], env...)
			args := []string{"--update"}
			if env == nil {
				args = append(args, "--data", u.data(), "--tenant", "t_acme")
				script = strings.ReplaceAll(script, "swarmdeck task list", "swarmdeck --tenant t_acme task list")
			}
			code, out, stderr := p.play(script, args...)
			expect.Must(t, code == 0 && strings.Contains(out, "ok") && !strings.Contains(stderr, "world of its own"), "exit %d %s%s", code, out, stderr)
			text, _ := os.ReadFile(filepath.Join(u.home, "test.txtar"))
			expect.True(t, strings.Contains(string(text), "-- want/tasks.screen --\n t_acme"), "no screen in:\n%s", text)
		})
	}
	expect.Has(t, d.ok("--tenant", "t_acme", "audit", "list", "--kind", "task.queued", "-o", "json"), `"door":"script"`, "door")
	p := *u
	code, _, stderr := p.play("# look\ncockpit\nscreen /nowhere/\n", "--data", u.data(), "--tenant", "t_acme")
	expect.True(t, code == 1 && strings.Contains(stderr, "test.txtar:3: screen") && strings.Contains(stderr, "screen:\n  | t_acme"), "exit %d %s", code, stderr)
	code, _, stderr = p.play("restart\n", "--data", u.data())
	expect.True(t, code == 1, "restart: exit %d %s", code, stderr)
	code, _, stderr = p.play("tenant list\nrestart\n", "--data", u.data())
	expect.True(t, code == 1 && strings.Contains(stderr, "runs in another process"), "restart: exit %d %s", code, stderr)
}
