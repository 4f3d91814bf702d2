package swarmfile_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/expect"
	"swarmdeck/ui/command/swarmfile"
)

func load(text string) (*swarmfile.File, error) {
	return swarmfile.Load("swarm.yaml", []byte(text), swarmfile.Vars{Dir: "/files", CWD: "/here"})
}

func TestAWholeFile(t *testing.T) {
	got, err := load(`
tenant: t_demo
sessions:
  - name: main
    budget: {tasks: 20, wall: 1h30m, cost: 2.5, tokens: 1000}
  - name: later
    start: false
agents:
  - name: changed
    project: quickstart
    role: reader
    command: [sh, "${DIR}/a.sh", '${HOME}', 7, true]
    env: {OUT: "${CWD}/out", N: 1}
    dir: ${CWD}
    session: main
    task: |
      What changed?
  - {name: own, project: p, command: [./run, -x], dir: sub, session: se_d08df_0000000001, options: {mode: ask, limits: [1, true], home: "${DIR}/home"}}
budgets:
  - subject: tenant
    tasks: 100
  - {subject: "session:main", tokens: 5}
  - {subject: "agent:changed", wall: 10m}
skills: [skills, ../other/one.yaml, "${CWD}/two.json"]
policy:
`)
	expect.No(t, err)
	want := &swarmfile.File{
		Path: "swarm.yaml", Tenant: "t_demo",
		Sessions: []swarmfile.Session{
			{Name: "main", Start: true, Budget: swarmfile.Limits{Tasks: 20, Wall: 90 * time.Minute, Cost: 2.5, Tokens: 1000}, Line: 4},
			{Name: "later", Line: 6},
		},
		Agents: []swarmfile.Agent{
			{
				Name: "changed", Runtime: "exec", Project: "quickstart", Role: "reader",
				Command: []string{"sh", "/files/a.sh", "${HOME}", "7", "true"}, Env: map[string]string{"OUT": "/here/out", "N": "1"},
				Dir: "/here", Session: "main", Task: "What changed?\n", Line: 9,
			},
			{
				Name: "own", Runtime: "exec", Project: "p", Command: []string{"/files/run", "-x"}, Dir: "/files/sub", Session: "se_d08df_0000000001",
				Options: core.Raw(`{"mode":"ask","limits":[1,true],"home":"/files/home"}`), Line: 18,
			},
		},
		Budgets: []swarmfile.Budget{
			{Subject: "tenant", Limits: swarmfile.Limits{Tasks: 100}, Line: 20},
			{Subject: "session:main", Limits: swarmfile.Limits{Tokens: 5}, Line: 22},
			{Subject: "agent:changed", Limits: swarmfile.Limits{Wall: 10 * time.Minute}, Line: 23},
		},
		Skills: []swarmfile.Skill{{Path: "/files/skills", Line: 24}, {Path: "/other/one.yaml", Line: 24}, {Path: "/here/two.json", Line: 24}},
	}
	expect.Row(t, got.Agents[0].Lines, "project", 10, "task", 16)
	for i := range got.Sessions {
		got.Sessions[i].Lines = nil
	}
	for i := range got.Agents {
		got.Agents[i].Lines = nil
	}
	for i := range got.Budgets {
		got.Budgets[i].Lines = nil
	}
	expect.True(t, reflect.DeepEqual(got, want), "\n got %+v\nwant %+v", got, want)
}

func TestEveryMistakeIsToldAtOnceWithItsLine(t *testing.T) {
	_, err := load(`tenant: Bad
colour: red
sessions:
  - name: main
    start: soon
  - name: main
  - {budget: {tasks: -1, wall: long, gold: 1}}
agents:
  - name: a
    project: p
    command: run
    session: night
  - project: p
    command: [x]
    env: [A]
  - just text
budgets:
  - subject: everything
  - subject: session:day
    tasks: 1.5
skills: [[a.yaml], {name: x, version: 1.0.0, runner: {kind: builtin, name: echo}}]
mcp_servers: [{name: Bad, command: [y]}, {command: [y]}, {name: far, url: http://far, headers: {A: 1b}}]
scenarios: {x: {}}
roles:
  - {name: r, allowed_operations: [entity.list]}
  - {name: r, allowed: x}
operators: [a]
`)
	var e *core.Error
	expect.Must(t, errors.As(err, &e) && e.Code == core.InvalidInput, "%v", err)
	want := []string{
		`1: tenant: tenant_id: "Bad" is not allowed`,
		`2: colour: unknown field; allowed: agents, budgets`,
		`5: sessions[0].start: want true or false, got text`,
		`6: sessions.name: "main" is already named in line 4`,
		`7: sessions[2].budget.tasks: want a number of 0 or more`,
		`7: sessions[2].budget.wall: "long" is not allowed; want a duration`,
		`7: sessions[2].budget.gold: unknown field; allowed: cost, tasks, tokens, wall`,
		`7: sessions[2].name: missing`,
		`9: agents.session: "night" is no session of this file`,
		`11: agents[0].command: want a list, got text`,
		`13: agents[1].name: missing`,
		`15: agents[1].env: want a mapping, got a list`,
		`16: agents[2]: want a mapping, got text`,
		`18: budgets[0].subject: "everything" is not allowed; allowed: tenant, session:NAME, agent:NAME`,
		`19: budgets.subject: "day" is no session of this file`,
		`20: budgets[1].tasks: want a whole number`,
		`21: skills[0]: want text, got a list`,
		`21: skills[1].name: "x" is not allowed; allowed: 3-50 of a-z A-Z 0-9 -`,
		`21: skills[1].parameters_schema: missing`,
		`22: mcp_servers[0].name: name: "Bad" is not allowed; allowed: 1-40 of a-z 0-9 -`,
		`22: mcp_servers[1].name: missing`,
		`22: mcp_servers[2]: headers.A: "1b" is not allowed; allowed: the name of an environment variable`,
		`23: scenarios: want a list, got a mapping`,
		`25: roles[0].description: missing`,
		`26: roles[1].allowed: unknown field; allowed: allowed_operations, description`,
		`26: roles.name: "r" is already named in line 25`,
		`27: operators[0]: want a mapping, got text`,
	}
	lines := strings.Split(e.Message, "\n")
	for _, w := range want {
		found := false
		for _, line := range lines {
			found = found || strings.HasPrefix(line, "swarm.yaml:"+w)
		}
		expect.True(t, found, "missing: %s", w)
	}
	problems, ok := e.Details["problems"].([]document.Problem)
	if !ok || len(problems) != len(lines) || problems[0].Line != 1 || problems[0].Field != "tenant" {
		t.Errorf("details: %+v", e.Details)
	}
	if t.Failed() {
		t.Log(e.Message)
	}
}

func TestBrokenFilesAreRefusedClearly(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "swarm.yaml:1: file: empty",
		"# nothing\n":                            "file: empty",
		"- a\n- b\n":                             "swarm.yaml:1: file: want a mapping, got a list",
		"just text":                              "file: want a mapping, got text",
		"tenant: t_ab\ntenant: t_cd\n":           "swarm.yaml:2: file: not valid YAML",
		"tenant: [\n":                            "file: not valid YAML",
		"tenant: t_ab\n---\ntenant: t_cd":        "swarm.yaml:3: file: a second document",
		"agents: &a\n  - x\nbudgets: *a\n":       "anchor or alias",
		"? [a]\n: b\n":                           "file: ",
		"tenant: " + strings.Repeat("[", 10_000): "nested too deeply",
		"tenant: t_" + strings.Repeat("x", swarmfile.MaxSize): "larger than",
		"tenant: t_" + strings.Repeat("x", 20<<10):            "line is longer than",
	} {
		_, err := load(text)
		expect.True(t, err != nil && strings.Contains(err.Error(), want), "%.40q: %v, want …%s…", text, err, want)
	}
}

func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"tenant: t_demo\nsessions:\n  - name: main\n",
		"agents: [{name: a, project: p, command: [x], env: {A: 1}}]",
		"budgets: [{subject: tenant, tasks: 1e3, wall: 1h, cost: .inf}]",
		"a: &b [*b]", "<<: {a: b}", "? a\n: b", "!!binary x: y", "\"\\x\": 1", "- - - -", "{[{[", "a: |\n  b\n  c", "\xff", "%YAML 1.2\n---\na: b",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := load(text)
		expect.Must(t, file != nil || err != nil, "neither a file nor an error")
		var e *core.Error
		if err != nil && (!errors.As(err, &e) || e.Code != core.InvalidInput || !strings.HasPrefix(err.Error(), "swarm.yaml:")) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
