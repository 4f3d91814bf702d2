package command_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/examples"
	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

func (d *deck) write(name, text string) {
	d.t.Helper()
	d.no(os.MkdirAll(filepath.Dir(filepath.Join(d.dir, name)), 0o700))
	d.no(os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600))
}

// applied runs `up` and returns "action object name" lines.
func (d *deck) applied(file string) []string {
	d.t.Helper()
	var all []string
	for _, o := range d.objects("up " + file) {
		all = append(all, fmt.Sprint(o["action"], " ", o["object"], " ", o["name"]))
	}
	return all
}

func TestUpIsIdempotentAndFollowsTheFile(t *testing.T) {
	d := newDeck(t)
	text := `
tenant: t_up
sessions:
  - {name: day, budget: {tasks: 5}}
  - {name: night, start: false}
agents:
  - {name: one, project: p, role: r, command: [cat], session: day, env: {A: "1"}}
budgets:
  - {subject: tenant, cost: 3}
`
	d.write("swarm.yaml", text)
	created := []string{
		"created tenant t_up", "created session day", "created budget session:day", "created session night", "created agent one", "created budget tenant",
	}
	expect.Same(t, d.applied("."), created, "first")
	var unchanged []string
	for _, line := range created {
		unchanged = append(unchanged, strings.Replace(line, "created", "unchanged", 1))
	}
	expect.Same(t, d.applied("swarm.yaml"), unchanged, "again")
	expect.Is(t, d.line("up swarm.yaml -o sentence"), "applied swarm.yaml: 0 created, 0 changed, 6 as they were\n", "in a sentence")
	all := d.objects("session list")
	expect.True(t, len(all) == 2 && all[1]["name"] == "day" && all[1]["state"] == "running" && all[0]["state"] == "created", "sessions: %v", all)

	for _, change := range []struct{ from, to, want string }{
		{"tasks: 5", "tasks: 6", "changed budget session:day"},
		{"cost: 3", "cost: 4", "changed budget tenant"},
		{", start: false", "", "changed session night"},
		{"[cat]", "[cat, -u]", "changed agent one"},
		{`"1"`, `"2"`, "changed agent one"},
		{"role: r", "role: s", "changed agent one"},
		{"session: day, env", "session: night, env", "changed agent one"},
	} {
		text = strings.Replace(text, change.from, change.to, 1)
		d.write("swarm.yaml", text)
		got := d.applied("swarm.yaml")
		expect.Same(t, slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "unchanged") }), []string{change.want}, change.from, change.to)
	}
	got := d.object("agent show one")
	expect.True(t, fmt.Sprint(got["command"]) == "[cat -u]" && got["role"] == "s", "agent: %v", got)
}

func TestUpRefusesAFileAsAWhole(t *testing.T) {
	d := newDeck(t)
	d.write("bad.yaml", `tenant: t_up
sessions:
  - name: day
    budget:
      tokens: 9000000000000000
  - name: "bad name"
agents:
  - {name: ok, project: p, command: [cat]}
  - name: not a name
    project: " p"
    role: "a\u202eb"
    runtime: nosuch
    command: [cat]
  - name: lost
    project: p
    command: [no-such-program]
    session: se_00000_0000000099
  - name: away
    project: p
    command: [cat]
    dir: /no/such/dir
    task: "  "
budgets:
  - {subject: "agent:b d", cost: 1}
  - {subject: session:se_00000_0000000098, cost: 1}
  - subject: tenant
    cost: 9000000000000000
`)
	code, message, details := d.fails(1, "up bad.yaml")
	n, _ := details["problems"].([]any)
	expect.True(t, code == "INVALID_INPUT" && len(n) == 13, "%s %d problems\n%s", code, len(n), message)
	for _, want := range []string{
		"bad.yaml:4: sessions[0].budget.tokens: ", "bad.yaml:6: sessions[1].name: ",
		"bad.yaml:9: agents[1].name: ", "bad.yaml:10: agents[1].project: ", "bad.yaml:11: agents[1].role: ", "bad.yaml:12: agents[1].runtime: ",
		"bad.yaml:16: agents[2].command: ", "bad.yaml:17: agents[2].session: ",
		"bad.yaml:21: agents[3].dir: ", "bad.yaml:22: agents[3].task: ",
		"bad.yaml:24: budgets[0].subject: ", "bad.yaml:25: budgets[1].subject: ", "bad.yaml:27: budgets[2].cost: ",
	} {
		expect.Has(t, message, want, "no")
	}
	_, _, stderr := d.run("up", "bad.yaml")
	expect.True(t, strings.Count(stderr, "\n") == 13, "not a line each:\n%s", stderr)
	all := d.objects("tenant list")
	expect.True(t, len(all) == 0, "made: %v", all)
	d.write("worse.yaml", "agents:\n  - {name: x}\n  - {nme: y}\n")
	exit, out, stderr := d.run("up", "worse.yaml")
	expect.True(t, exit == 1 && out == "" && strings.Count(stderr, "worse.yaml:") >= 4, "exit %d\n%s%s", exit, out, stderr)
	d.write("many.yaml", `
slots: 0
sessions:
  - name: "bad name"
  - {nme: y}
agents:
  - {name: x, project: p, command: [no-such-program]}
budgets:
  - {subject: "agent:nobody", cost: 1}
skills:
  - name: walk
    version: one
    parameters_schema: {type: object}
    dependencies: [no-such-skill]
    runner: {kind: exec, argv: ["true"]}
`)
	exit, out, stderr = d.run("up", "many.yaml")
	for _, want := range []string{"many.yaml:2: slots", "many.yaml:4: sessions[0].name", "many.yaml:5: sessions[1]", "many.yaml:7: agents[0].command", "many.yaml:9: budgets[0].subject", "many.yaml:12: skills[0].version", "no-such-skill"} {
		expect.True(t, exit == 1 && out == "" && strings.Contains(stderr, want), "exit %d, no %q in\n%s%s", exit, want, out, stderr)
	}
	d.write("other.yaml", "tenant: t_other\n")
	code, message, _ = d.fails(1, "--tenant t_up up other.yaml")
	expect.True(t, code == "CONFLICT" && strings.Contains(message, "t_other"), "%s %s", code, message)
	d.no(os.Mkdir(filepath.Join(d.dir, "empty"), 0o700))
	d.fails(1, "up empty")
}

// quickstart applies the example in the deck's directory.
func (d *deck) quickstart() {
	d.t.Helper()
	dir := expect.Of(examples.Extract("quickstart", filepath.Join(d.dir, "examples")))(d.t)
	d.line("up " + core.Quote(dir))
}

func TestTheQuickstartSwarmWorks(t *testing.T) {
	d := newDeck(t)
	d.write("main.go", "package main // TODO: say more\n")
	d.write("big.bin", strings.Repeat("x", 100<<10))
	d.quickstart()
	for name, want := range map[string]string{"todo": `"notes":`, "large": `"kib":`, "changed": `"files_changed_within_a_day":`} {
		task := str(d.object("agent history " + name)["task_id"])
		expect.Row(t, d.object("task wait "+task+" --timeout 20s"), "status", "succeeded")
		expect.Has(t, d.line("result show "+task+" -o json"), want, name)
	}
	expect.Has(t, d.line("agent log todo --page-size 20"), "main.go:1:package main // TODO: say more", "todo's log")

	expect.Has(t, d.line("agent log large --page-size 20"), "100 KiB  ./big.bin", "large's log")

	note := filepath.Join(d.dir, "swarmdeck-notes.txt")
	task := str(d.object("agent history scribe")["task_id"])
	open := d.until("approval list --open", "status", "open")
	_, err := os.Stat(note)
	expect.Must(t, err != nil, "the scribe wrote before it was allowed to")
	d.line("approval deny " + str(open["approval_id"]) + " --reason 'not now'")
	expect.Row(t, d.object("task wait "+task+" --timeout 20s"), "status", "succeeded", "denials", 1.0)
	expect.Fails(t, expect.Fault(os.Stat(note)), "the scribe wrote although it was denied")

	d.until("agent show scribe", "status", "idle")
	task = str(d.object("agent assign scribe 'try again'")["task_id"])
	id := str(d.until("approval list --open", "status", "open")["approval_id"])
	content := "It's \"quoted\" \\ and é 日本 😀\ttabbed\n\nlast line\n"
	edit := string(core.MustEncode(map[string]string{"path": "my notes.txt", "content": content}))
	d.line("approval approve " + id + " --reason fine --edit " + core.Quote(edit))
	expect.Row(t, d.object("task wait "+task+" --timeout 20s"), "status", "succeeded")
	got, err := os.ReadFile(filepath.Join(d.dir, "my notes.txt"))
	expect.True(t, err == nil && string(got) == content, "wrote %q, %v; approved was %q", got, err, content)
	expect.Fails(t, expect.Fault(os.Stat(note)), "the scribe wrote what it asked for and not what was approved")
	d.line("audit verify")
	d.line("audit reconcile")
}

func TestDemo(t *testing.T) {
	d := newDeck(t)
	d.env.Caller.Door = core.DoorCLI
	var at command.Start
	closed := false
	d.env.Close = func() error { closed = true; return nil }
	d.env.Doors.Cockpit = func(_ context.Context, _ *command.Env, s command.Start) error {
		at = s
		_, err := os.Stat(filepath.Join(filepath.Dir(s.Data), "quickstart", "agents", "scribe.sh"))
		expect.True(t, err == nil, "%v", err)
		page, err := s.Engine.Fleet.Agents(context.Background(), s.Caller.Tenant, core.Filter{})
		expect.True(t, err == nil && page.Info.Total == 4, "agents: %+v %v", page.Info, err)
		return nil
	}
	open := d.env.Open
	d.env.Open = func(ctx context.Context, need command.Need) (*engine.Engine, error) {
		expect.True(t, need.Active && !need.ReadOnly && need.Data != d.data, "opened with %+v", need)
		return open(ctx, need)
	}
	d.write("large", "")
	d.no(os.Truncate(filepath.Join(d.dir, "large"), 3<<30))
	if code, _, _ := d.fails(2, "demo"); code != "INVALID_INPUT" || at.Engine != nil {
		t.Errorf("in a directory that is too large: %s", code)
	}
	d.no(os.Truncate(filepath.Join(d.dir, "large"), 300))
	if code, _, stderr := d.run("demo"); code != 0 || !strings.Contains(stderr, "its state is kept beside the demo's data, at most") {
		t.Fatalf("exit %d %s", code, stderr)
	}
	expect.True(t, at.Caller.Tenant == "t_demo" && at.Caller.Name == "alice" && at.Engine != nil, "the cockpit began at %+v", at)
	_, err := os.Stat(filepath.Dir(at.Data))
	expect.True(t, err != nil && closed, "the demo's files are still there (closed: %v)", closed)
	code, _, stderr := d.run("demo", "--dir", "kept")
	_, err = os.Stat(filepath.Join(d.dir, "kept", "quickstart", "swarm.yaml"))
	expect.True(t, err == nil && code == 0 && strings.Contains(stderr, "kept"), "exit %d %s %v", code, stderr, err)
	d.no(os.WriteFile(filepath.Join(d.dir, "kept", "demo.db"), nil, 0o600))
	if code, _, _ := d.fails(1, "demo --dir kept"); code != "CONFLICT" {
		t.Errorf("over another demo: %s", code)
	}
}
