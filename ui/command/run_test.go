package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

func TestExitCodesAndErrorObjects(t *testing.T) {
	d := newDeck(t)
	d.no(os.WriteFile(filepath.Join(d.dir, "there"), nil, 0o600))
	d.line("tenant list")
	d.line("task list") // makes the default tenant
	failing := str(d.object(`task dispatch --kind exec.run --input '{"argv":["date"]}' --wait`)["task_id"])
	for _, c := range []struct {
		line    string
		exit    int
		code    string
		field   string
		message string
	}{
		{"nosuch", 2, "INVALID_INPUT", "command", `unknown command "nosuch"`},
		{"nosuch --flag", 2, "INVALID_INPUT", "command", `unknown command "nosuch"`},
		{"task lisst --flag", 2, "INVALID_INPUT", "command", "did you mean list?"},
		{"taks list", 2, "INVALID_INPUT", "command", "did you mean task?"},
		{"task", 2, "INVALID_INPUT", "command", "dispatch"},
		{"task lisst", 2, "INVALID_INPUT", "command", "did you mean list?"},
		{"task list --nosuch", 2, "INVALID_INPUT", "nosuch", "unknown flag"},
		{"task list --page", 2, "INVALID_INPUT", "page", "needs an argument"},
		{"task list --page x", 2, "INVALID_INPUT", "page", `"x" is not allowed`},
		{"task list --page 0", 2, "INVALID_INPUT", "page", "1 or more"},
		{"task list --page-size 101", 2, "INVALID_INPUT", "page_size", "1-100"},
		{"task list --status done", 2, "INVALID_INPUT", "status", "queued"},
		{"task list --since yesterday", 2, "INVALID_INPUT", "since", "15m"},
		{"task list --until 5m --since 1m", 2, "INVALID_INPUT", "until", "after since"},
		{"task list extra", 2, "INVALID_INPUT", "args", `unexpected argument "extra"`},
		{"task show", 2, "INVALID_INPUT", "id", "ID is missing"},
		{"task show nonsense", 2, "INVALID_INPUT", "task_id", "not allowed"},
		{"task show tk_8a039_0000009999", 1, "NOT_FOUND", "", ""},
		{"task show tk_00000_0000000001", 1, "DENIED", "", "another tenant"},
		{"task cancel " + failing, 1, "CONFLICT", "", ""},
		{"task dispatch", 2, "INVALID_INPUT", "kind", "--kind is missing"},
		{"task dispatch --kind exec.run", 2, "INVALID_INPUT", "input", "--input is missing"},
		{"task dispatch --kind exec.run --input '{'", 2, "INVALID_INPUT", "input", "not valid JSON"},
		{"task dispatch --kind exec.run --input '[]'", 2, "INVALID_INPUT", "input", "JSON object"},
		{"task dispatch --kind exec.run --input @missing.json", 1, "NOT_FOUND", "input", "missing.json"},
		{"task dispatch --kind exec.run --input {}", 2, "INVALID_INPUT", "", "argv"},
		{`task dispatch --kind exec.run --input '{"argv":["true"]}' --priority 101`, 2, "INVALID_INPUT", "priority", "0-100"},
		{`task dispatch --kind exec.run --input '{"argv":["true"]}' --timeout soon`, 2, "INVALID_INPUT", "timeout", "15m"},
		{`task dispatch --kind exec.run --input '{"argv":["true"]}' --timeout 0s`, 2, "INVALID_INPUT", "timeout_s", "1s-24h"},
		{`task dispatch --kind exec.run --input '{"argv":["true"]}' --start-within 0s`, 2, "INVALID_INPUT", "start_timeout_s", "1s-24h"},
		{`task dispatch --kind exec.run --input '{"argv":["true"]}' --start-within 100000s`, 2, "INVALID_INPUT", "start_timeout_s", "1s-24h"},
		{"task wait --status done x", 2, "INVALID_INPUT", "status", "queued"},
		{"agent create x --project p", 2, "INVALID_INPUT", "command", ""},
		{"agent create x", 2, "INVALID_INPUT", "project", "--project is missing"},
		{"agent create", 2, "INVALID_INPUT", "name", "NAME is missing"},
		{"agent create x y --project p", 2, "INVALID_INPUT", "args", `"y"`},
		{"agent create x --project p --command date -- date", 2, "INVALID_INPUT", "command", "not both"},
		{"agent create x --project p --env NOPE -- date", 2, "INVALID_INPUT", "env", "KEY=VALUE"},
		{"agent create x --project p --command \"date 'x\"", 2, "INVALID_INPUT", "line", "quotes"},
		{"agent show nobody", 1, "NOT_FOUND", "agent", "nobody"},
		{"agent delete nobody", 2, "INVALID_INPUT", "yes", "--yes"},
		{"agent delete nobody --yes", 1, "NOT_FOUND", "agent", "nobody"},
		{"agent assign nobody ' '", 2, "INVALID_INPUT", "text", "missing"},
		{"approval deny x", 2, "INVALID_INPUT", "reason", "--reason is missing"},
		{"approval approve x --always tool", 2, "INVALID_INPUT", "always", "agent, run, session, project, anyone"},
		{"approval approve x --expires 1h", 2, "INVALID_INPUT", "always", "--always"},
		{"approval approve x --shown now", 2, "INVALID_INPUT", "shown", "2026"},
		{"approval list --open --status denied", 2, "INVALID_INPUT", "open", "exclude"},
		{"approval defer x", 2, "INVALID_INPUT", "for", "--for is missing"},
		{"approval escalate x", 2, "INVALID_INPUT", "to", "--to is missing"},
		{"estop on", 2, "INVALID_INPUT", "reason", "--reason is missing"},
		{"budget set nothing --tasks 1", 2, "INVALID_INPUT", "subject", ""},
		{"budget set tenant --tasks -5", 2, "INVALID_INPUT", "tasks", "-5 is not allowed"},
		{"budget set tenant", 2, "INVALID_INPUT", "limit", "no limit is given"},
		{"budget set tenant --cost NaN", 2, "INVALID_INPUT", "cost_usd", "not allowed"},
		{"session create --budget tokens=-1", 2, "INVALID_INPUT", "tokens", "-1"},
		{"session create --budget bad=1", 2, "INVALID_INPUT", "budget", "tokens=N"},
		{"session create --budget tasks=x", 2, "INVALID_INPUT", "budget", "tasks=x"},
		{"tenant create Bad", 2, "INVALID_INPUT", "tenant_id", "t_"},
		{"tenant create t_default", 1, "CONFLICT", "", ""},
		{"tenant show t_nowhere", 1, "NOT_FOUND", "tenant", "t_default"},
		{"task list --tenant t_nowhere", 1, "NOT_FOUND", "tenant", "t_default"},
		{"audit check-proof nofile", 1, "NOT_FOUND", "file", "nofile"},
		{"audit export --format xml", 2, "INVALID_INPUT", "format", "jsonl"},
		{"audit export --out there", 1, "CONFLICT", "out", "exists already"},
		{"completion tcsh", 2, "INVALID_INPUT", "shell", "bash"},
		{"theme show nosuch", 1, "NOT_FOUND", "theme", "terminal"},
		{"task dispatch --kind exec.run --input '{\"argv\":[\"true\"]}' --priority 101", 2, "INVALID_INPUT", "priority", "0-100"},
		{"task dispatch --kind exec.run --input '{\"argv\":[\"true\"]}' --timeout 0s", 2, "INVALID_INPUT", "", "timeout"},
		{"task dispatch --kind exec.run --input '{\"argv\":[\"true\"]}' --timeout 100000s", 2, "INVALID_INPUT", "", "timeout"},
		{"task dispatch --kind exec.run --input '{\"argv\":[\"true\"]}' --max-attempts 101", 2, "INVALID_INPUT", "max_attempts", "101"},
		{"task list --page-size 101", 2, "INVALID_INPUT", "page_size", "101"},
		{"--as '' session create", 2, "INVALID_INPUT", "as", "1-64"},
		{"--as ' x' session create", 2, "INVALID_INPUT", "as", "1-64"},
		{"--as " + strings.Repeat("x", 65) + " session create", 2, "INVALID_INPUT", "as", "1-64"},
		{"--as 'a\x1b[31mb' session create", 2, "INVALID_INPUT", "as", "1-64"},
		{"--as 'a\u202eb' session list", 2, "INVALID_INPUT", "as", "1-64"},
		{"approval escalate x --to 'a\u200bb'", 2, "INVALID_INPUT", "to", "1-64"},
		{"audit export --out no/such/dir", 1, "NOT_FOUND", "out", "can't write no/such/dir"},
		{"store backup no/such/dir.db", 1, "NOT_FOUND", "file", "can't write no/such/dir.db"},
		{"store backup there", 1, "CONFLICT", "file", "exists already"},
		{"theme show ../x", 2, "INVALID_INPUT", "theme", ""},
		{"help nosuch", 2, "INVALID_INPUT", "command", "nosuch"},
		{"up nofile.yaml", 1, "NOT_FOUND", "file", "nofile.yaml"},
		{"store restore there", 1, "UNAVAILABLE", "", "open"},
		{"demo", 1, "UNAVAILABLE", "", "command line"},
		{"--data other.db task list", 2, "INVALID_INPUT", "data", "already"},
		{"--script x.txtar", 1, "UNAVAILABLE", "script", ""},
		{"--update", 2, "INVALID_INPUT", "update", "--script"},
		{"--color red task list", 2, "INVALID_INPUT", "color", "auto"},
	} {
		code, message, details := d.fails(c.exit, c.line)
		expect.True(t, code == c.code && (c.field == "" || details["field"] == c.field) && strings.Contains(message, c.message),
			"%s:\n got %s field=%v %q\nwant %s field=%v …%q…", c.line, code, details["field"], message, c.code, c.field, c.message)
	}
}

func TestErrorsInTextAreOneCleanLine(t *testing.T) {
	d := newDeck(t)
	code, out, stderr := d.run("task", "show", "x\x1b]0;owned\a\u202e\nline")
	expect.True(t, code == 2 && out == "" && strings.HasPrefix(stderr, "swarmdeck: ") && strings.Count(stderr, "\n") == 1,
		"exit %d, stdout %q, stderr %q", code, out, stderr)
	expect.True(t, !strings.ContainsAny(stderr, "\x1b\a\u202e"), "control characters got through: %q", stderr)
}

func TestReadOnlyRefusesEveryWriteBeforeOpening(t *testing.T) {
	d := newDeck(t)
	d.env.Open = nil // opening would fail with another error
	for _, info := range command.Commands() {
		args := append([]string{"--read-only"}, strings.Fields(info.Path)...)
		for _, word := range strings.Fields(info.Use)[1:] {
			if !strings.HasPrefix(word, "[") {
				args = append(args, "x")
			}
		}
		code, _, stderr := d.run(args...)
		refused := strings.Contains(stderr, "refused because of --read-only")
		want := info.Effect != command.Reads
		expect.True(t, refused == want && (!want || code == 1), "%s (%s): exit %d, %s", info.Path, info.Effect, code, stderr)
	}
}

func TestAReadOnlyDoorStaysOne(t *testing.T) {
	d := newDeck(t)
	d.line("session create")
	d.env.ReadOnly = true
	d.line("session list")
	code, _, _ := d.fails(1, "session create")
	expect.True(t, code == "DENIED", "%v", code)
}

func TestLinesInsideADoorWorkOnItsEngine(t *testing.T) {
	d := newDeck(t)
	d.env.Caller.Door = core.DoorCLI
	d.env.Doors.Cockpit = func(ctx context.Context, env *command.Env, s command.Start) error {
		line := *env
		line.Caller.Door = core.DoorCockpit
		out, stderr, code := command.Capture(ctx, line, []string{"session", "create", "-o", "json"})
		expect.True(t, code == 0 && strings.Contains(out, s.Caller.Tenant), "exit %d %s%s", code, out, stderr)
		out, _, code = command.Capture(ctx, line, nil)
		expect.True(t, code == 2 && out == "", "a cockpit within the cockpit: exit %d", code)
		return nil
	}
	code, _, stderr := d.run()
	expect.Must(t, code == 0, "exit %d %s", code, stderr)
	n := len(d.needs)
	expect.True(t, n != 0 && d.needs[n-1].Active, "opened with %+v", d.needs)
}

func TestEndlessOutputIsRefused(t *testing.T) {
	d := newDeck(t)
	tk := str(d.object(`task dispatch --kind exec.run --input '{"argv":["true"]}' --wait`)["task_id"])
	by := d.env.Caller
	by.Tenant = "t_default"
	many := make([]task.LogLine, 100)
	for i := range many {
		many[i] = task.LogLine{Level: "INFO", Message: strings.Repeat("x", 2000)}
	}
	for range 25 {
		d.no(d.eng.Tasks.AppendLog(t.Context(), by, tk, many))
	}
	out, stderr, code := command.Capture(t.Context(), d.env, []string{"task", "log", tk, "--lines", "0"})
	expect.True(t, code == 1 && len(out) <= command.MaxCapture && strings.Contains(stderr, "more than"), "exit %d, %d bytes, %s", code, len(out), stderr)
}

func TestRolesBoundWhatADoorMayDo(t *testing.T) {
	d := newDeck(t)
	d.env.Role = command.Viewer
	d.line("task list")
	code, message, _ := d.fails(1, "session create")
	expect.True(t, code == "DENIED" && strings.Contains(message, "operator"), "%s %s", code, message)
	d.env.Role = command.Operator
	d.line("session create")
	code, message, _ = d.fails(1, "approval deny x --reason y")
	expect.True(t, code == "DENIED" && strings.Contains(message, "approver"), "%s %s", code, message)
	d.env.Role = "guest"
	code, _, _ = d.fails(1, "task list")
	expect.True(t, code == "DENIED", "an unknown role may do something")
	d.env.Role, d.env.Caller.Door = "", core.DoorSSH
	code, _, _ = d.fails(2, "--as root task list")
	expect.True(t, code == "DENIED", "an authenticated door let its operator be changed")
}

func TestTenantIsChosenInOrder(t *testing.T) {
	d := newDeck(t)
	// None: made for a command that needs one, but not with --read-only.
	code, message, _ := d.fails(1, "--read-only task list")
	expect.True(t, code == "NOT_FOUND" && strings.Contains(message, "no tenant"), "%s %s", code, message)
	expect.Is(t, d.object("session create")["tenant_id"], "t_default", "made")
	d.line("tenant create t_other")
	expect.Is(t, d.object("session create")["tenant_id"], "t_default", "the first, until another is said")
	env := d.env.Getenv
	d.env.Getenv = func(name string) string {
		if name == "SWARMDECK_TENANT" {
			return "t_other"
		}
		return env(name)
	}
	expect.Is(t, d.object("session create")["tenant_id"], "t_other", "environment")
	d.env.Caller.Tenant = "t_default"
	expect.Is(t, d.object("session create")["tenant_id"], "t_default", "door")
	expect.Is(t, d.object("session create --tenant t_other")["tenant_id"], "t_other", "flag")
}

func TestWaitEndsWithTheTask(t *testing.T) {
	d := newDeck(t)
	got := d.object(`task dispatch --kind exec.run --input '{"argv":["echo","hi"]}' --wait`)
	expect.True(t, got["status"] == "succeeded" && got["input"] != nil, "%v", got)
	code, out, stderr := d.run("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["false"]}`, "--wait", "-o", "json")
	last := decode(t, out)
	expect.True(t, code == 1 && len(last) == 1 && last[0]["status"] == "failed" && stderr == "", "failed task: exit %d, %s%s", code, out, stderr)
	slow := str(d.object(`task dispatch --kind exec.run --input '{"argv":["sleep","30"]}'`)["task_id"])
	kind, message, _ := d.fails(4, "task wait "+slow+" --timeout 100ms")
	expect.True(t, kind == "UNAVAILABLE" && strings.Contains(message, "timed out"), "%s %s", kind, message)
	d.line("task wait " + slow + " --status running --timeout 10s")
	d.line("task cancel " + slow + " --reason enough")
	code, out, _ = d.run("task", "wait", slow)
	expect.True(t, code == 1 && strings.Contains(out, "cancelled"), "exit %d %s", code, out)
	d.line("task wait " + slow + " --status cancelled")
	code, _, _ = d.run("task", "wait", slow, "--status", "succeeded")
	expect.True(t, code == 1, "waiting for a status that can't come any more: exit %d", code)
}

func TestInterruptedCommandsExitWith130(t *testing.T) {
	d := newDeck(t)
	slow := str(d.object(`task dispatch --kind exec.run --input '{"argv":["sleep","30"]}'`)["task_id"])
	for _, args := range [][]string{{"task", "wait", slow}, {"task", "log", slow, "--follow"}} {
		for at := range 20 { // whatever it is at
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Duration(at)*2*time.Millisecond, cancel)
			code, _, stderr := d.runIn(ctx, d.env, args...)
			expect.True(t, code == command.ExitInterrupted, "%v: exit %d, %s", args, code, stderr)
		}
	}
	d.line("task cancel " + slow)
}

func TestManyLinesRunAtOnce(t *testing.T) {
	d := newDeck(t)
	d.line("task list")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for _, args := range [][]string{
				{"session", "create"}, {"session", "list", "-o", "json"}, {"task", "list", "--page", "1"}, {"nosuch"}, {"audit", "verify"},
			} {
				d.runIn(context.Background(), d.env, args...)
			}
			env := d.env
			command.Complete(context.Background(), &env, "session show ")
			command.Describe([]string{"task", "cancel", "x"})
		})
	}
	all.Wait()
	expect.Is(t, len(d.objects("session list")), 8, "sessions, want 8")
}

func TestInputsComeFromLiteralFileAndStdin(t *testing.T) {
	d := newDeck(t)
	input := `{"argv":["true"]}`
	d.no(os.WriteFile(filepath.Join(d.dir, "in.json"), []byte(input), 0o600))
	d.line("task dispatch --kind exec.run --input @in.json --wait")
	d.env.Stdin = strings.NewReader(input)
	d.line("task dispatch --kind exec.run --input - --wait")
	d.env.Stdin = strings.NewReader(`{"argv":["` + strings.Repeat("x", core.MaxInput) + `"]}`)
	_, message, _ := d.fails(2, "task dispatch --kind exec.run --input -")
	expect.True(t, strings.Contains(message, "larger than"), "%v", message)
}
