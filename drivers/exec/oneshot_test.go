package exec

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestACommandThatJustExitsIsAnAgent(t *testing.T) {
	for _, c := range []struct {
		name, script string
		status       task.Status
		code         string
		retryable    bool
		output       string
	}{
		{"status 0", "echo one; echo two", task.Succeeded, "", false, `{"rc":0,"stdout":"one\ntwo\n"}`},
		{"status 4", "echo one; echo why >&2; exit 4", task.Failed, "agent_exit", false, `{"rc":4,"stdout":"one\n"}`},
		{"signal", "kill -9 $$", task.Failed, "agent_killed", true, `{"rc":137,"stdout":""}`},
		{"no newline at the end", "printf tail", task.Succeeded, "", false, `{"rc":0,"stdout":"tail\n"}`},
		{"closed streams", "exec <&- >&- 2>&-; exit 0", task.Succeeded, "", false, `{"rc":0,"stdout":""}`},
		{
			"a result and another", `echo '{"type":"result","status":"failed","error":"no"}'; echo '{"type":"result","status":"succeeded"}'`,
			task.Failed, "agent_failed", false, `{}`,
		},
		{"a broken result", `echo '{"type":"result","status":"succeeded","output":"text"}'`, task.Failed, "agent_protocol", false, `{}`},
		{"a result of a wrong confidence", `echo '{"type":"result","status":"succeeded","confidence":7}'`, task.Failed, "agent_protocol", false, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, w := openAgent(t, sh(c.script)...)
			for range 2 { // each prompt has a process of its own
				out := ask(t, h, w.prompt("go"))
				expect.True(t, out.Status == c.status && string(out.Output) == c.output,
					"outcome %s %s, want %s %s", out.Status, out.Output, c.status, c.output)
				if c.code != "" && (out.Error == nil || out.Error.Code != c.code || out.Error.Retryable != c.retryable) {
					t.Errorf("error %+v, want %s", out.Error, c.code)
				}
			}
			expect.Await(t, "it is idle without a process", func() bool { l := w.last(); return l.Status == fleet.Idle && l.PID == 0 })
			if c.code != "agent_killed" && (w.seen(fleet.Offline, "") || w.last().Restarts != 0) {
				t.Errorf("an ordinary exit was reported as a failure: %+v", w.health)
			}
		})
	}
}

func TestTheFailureNamesTheLastComplaint(t *testing.T) {
	h, w := openAgent(t, sh("echo first >&2; echo 'cannot open x' >&2; exit 2")...)
	out := ask(t, h, w.prompt("go"))
	want := "cannot open x (the agent's process exited with status 2 without a result)"
	expect.True(t, out.Error != nil && out.Error.Message == want, "error %+v, want %q", out.Error, want)
}

func TestABigTaskForACommandThatReadsNothingDoesNotBlock(t *testing.T) {
	h, w := openAgent(t, sh("echo done")...)
	out := ask(t, h, w.prompt(strings.Repeat("x", 1<<20)))
	expect.True(t, out.Status == task.Succeeded, "outcome %s %+v", out.Status, out.Error)
}

func TestACommandIsNeverStartedUnasked(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	h, w := openAgent(t, sh(`echo run >>`+runs+`; read -r x; echo '{"type":"result","status":"succeeded"}'; kill -9 $$`)...)
	for range 3 {
		ask(t, h, w.prompt("go"))
	}
	expect.Await(t, "it is idle", func() bool { l := w.last(); return l.Status == fleet.Idle && l.PID == 0 })
	ran := func() int { return strings.Count(string(expect.Of(os.ReadFile(runs))(t)), "run") }
	expect.StillFor(t, 300*time.Millisecond, ran, "a restart, which would come after 100 ms")
	expect.Is(t, ran(), 3, "runs for 3 prompts")
}

func TestAMissingProgramShowsAndHealsWhenItComes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tool")
	r := expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{}))(t)
	expect.Err(t, r.Check(fleet.Create{Command: []string{path}}), core.Kind(core.InvalidInput), "check")
	w := &watch{}
	h := expect.Of(r.Open(context.Background(), fleet.Agent{Name: "a", TenantID: "t_test", Command: []string{path}}, w.notify))(t)
	defer h.Close()
	l := w.last()
	expect.True(t, l.Status == fleet.Failed && l.Trouble != nil && strings.Contains(l.Reason, path), "health %+v, want failed naming the program", l)
	expect.No(t, os.WriteFile(path, []byte("#!/bin/sh\necho hi\n"), 0o700))
	expect.Await(t, "it is idle", func() bool { return w.last().Status == fleet.Idle })
	out := ask(t, h, w.prompt("go"))
	expect.True(t, out.Status == task.Succeeded, "outcome %s %+v", out.Status, out.Error)
	expect.No(t, os.Remove(path))
	out = ask(t, h, w.prompt("go"))
	expect.True(t, out.Status == task.Failed && out.Error.Code == "not_found", "outcome %s %+v, want not_found", out.Status, out.Error)
	expect.Await(t, "it is failed", func() bool { return w.last().Status == fleet.Failed })
}

func TestCheckNamesTheFieldOfAnAgent(t *testing.T) {
	r := expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{}))(t)
	for _, c := range []struct {
		create fleet.Create
		field  string
	}{
		{fleet.Create{}, "command"},
		{fleet.Create{Command: []string{"no-such-program-here"}}, "command"},
		{fleet.Create{Command: []string{"/etc/passwd"}}, "command"},
		{fleet.Create{Command: []string{"sh"}, Dir: "/no/such"}, "dir"},
		{fleet.Create{Command: []string{"sh"}, Env: map[string]string{"1": ""}}, "env"},
		{fleet.Create{Command: []string{"sh"}, Env: map[string]string{"PATH": "/nowhere"}}, "command"},
	} {
		e := core.AsError(r.Check(c.create))
		expect.True(t, e.Code == core.InvalidInput && e.Details["field"] == c.field, "%+v: %v, want INVALID_INPUT naming %s", c.create, e, c.field)
	}
	expect.No(t, r.Check(fleet.Create{Command: []string{"sh", "-c", "x"}}))
}
