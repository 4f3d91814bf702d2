package exec

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// homes is a runtime that keeps homes, and what it says to one agent after
// another of a shell line.
func homes(t *testing.T) (r *Runtime, run func(a fleet.Agent, line string) (out string, log []string)) {
	t.Helper()
	r = expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{Dir: t.TempDir(), State: filepath.Join(t.TempDir(), "homes")}))(t)
	return r, func(a fleet.Agent, line string) (string, []string) {
		t.Helper()
		a.TenantID, a.Command = "t_test", []string{"sh", "-c", line}
		w := &watch{}
		h := expect.Of(r.Open(context.Background(), a, w.notify))(t)
		defer h.Close()
		out := ask(t, h, w.prompt("go"))
		expect.Must(t, out.Status == task.Succeeded, "%s: %+v", line, out)
		return strings.TrimSpace(out.Text), w.texts("log")
	}
}

func TestAnAgentKeepsAHomeOfItsOwn(t *testing.T) {
	r, run := homes(t)
	run(fleet.Agent{Name: "ada", Profile: "worker"}, "echo mine >~/note")
	got, _ := run(fleet.Agent{Name: "ada", Profile: "worker"}, "cat ~/note")
	expect.True(t, strings.Contains(got, "mine"), "its next run reads %q", got)
	got, _ = run(fleet.Agent{Name: "eve", Profile: "worker"}, "cat ~/note ~/../../ada/home/note 2>/dev/null; echo nothing")
	expect.True(t, !strings.Contains(got, "mine"), "another agent reads %q", got)
	got, _ = run(fleet.Agent{Name: "bold", Profile: "open"}, "echo $HOME")
	expect.True(t, !strings.Contains(got, "homes"), "an open agent's home is %q", got)
	expect.No(t, r.Forget(t.Context(), fleet.Agent{TenantID: "t_test", Name: "ada"}))
	got, _ = run(fleet.Agent{Name: "ada", Profile: "worker"}, "cat ~/note 2>/dev/null; echo nothing")
	expect.True(t, !strings.Contains(got, "mine"), "the next agent of the name reads %q", got)
}

func TestALoginIsCopiedToOneExecAgent(t *testing.T) {
	mine := t.TempDir()
	t.Setenv("HOME", mine)
	expect.No(t, os.MkdirAll(filepath.Join(mine, ".codex"), 0o700))
	expect.No(t, os.WriteFile(filepath.Join(mine, ".codex/auth.json"), []byte("login"), 0o600))
	_, run := homes(t)
	options := core.Raw(`{"login":["~/.codex"]}`)
	for _, profile := range []string{"worker", "open"} {
		got, log := run(fleet.Agent{Name: "ada", Profile: profile, Options: options}, "cat ~/.codex/auth.json; echo $HOME")
		expect.True(t, strings.Contains(got, "login") && !strings.Contains(got, mine+"\n"), "%s: %q", profile, got)
		expect.Has(t, strings.Join(log, "\n"), "its home has a copy of the login", profile, "its log says", log)
	}
	got, _ := run(fleet.Agent{Name: "eve", Profile: "worker"}, "cat ~/.codex/auth.json 2>/dev/null; echo nothing")
	expect.True(t, !strings.Contains(got, "login"), "another agent: %q", got)
}

func TestOptionsOfAHomeThatAreRefused(t *testing.T) {
	r, _ := homes(t)
	for field, c := range map[string]fleet.Create{
		"options.login":    {Options: core.Raw(`{"login":["/root/.codex"]}`)},
		"options.home":     {Options: core.Raw(`{"home":"x"}`)},
		"options.skeleton": {Options: core.Raw(`{"skeleton":"/not/there"}`)},
		"env.HOME":         {Options: core.Raw(`{"login":["~/.codex"]}`), Env: map[string]string{"HOME": "/tmp"}},
	} {
		c.Name, c.Command = "a", []string{"true"}
		err := r.Check(c)
		expect.True(t, err != nil && core.AsError(err).Details["field"] == field, "%s: %v", field, err)
	}
	places, _ := r.Reach(core.Raw(`{"login":["~/.codex"]}`))
	expect.True(t, len(places) == 1 && places[0] == "login", "from another machine it reaches %v", places)
}
