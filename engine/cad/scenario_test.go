package cad

import (
	"errors"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/expect"
)

func testRoles(t testing.TB) roleFinder {
	t.Helper()
	roles := expect.Of(builtinRoles())(t)
	return finderOf(roles)
}

func TestTheBuiltInScenariosAreWhole(t *testing.T) {
	all := expect.Of(builtinScenarios())(t)
	for name, pattern := range map[string]Pattern{"assembly_design": Mixed, "design_review_loop": Sequential, "parallel_component_creation": Parallel} {
		s, ok := all[name]
		expect.True(t, ok && s.Pattern == pattern && s.Builtin, "%s: %+v", name, s)
	}
	assembly := all["assembly_design"]
	for _, id := range []string{"housing_designer", "lid_designer", "support_designer", "integrator"} {
		expect.True(t, assembly.seat(id) != nil, "assembly_design has no %s", id)
	}
	for _, s := range all {
		for _, task := range s.Tasks {
			expect.True(t, task.Check != "" && task.SuccessCriteria != "", "%s: task %s is not measured", s.Name, task.TaskID)
		}
	}
}

// plan is a scenario that is right, but for what a test changes.
const plan = `scenario_name: plan
description: A plan
agent_assignments:
  - {agent_id: a, role_name: modeler, workspace_id: ws_a}
  - {agent_id: b, role_name: integrator, workspace_id: ws_b}
workflow_pattern: mixed
success_criteria: It is done
task_sequence:
  - task_id: t1
    agent_id: a
    description: Make a point
    operations:
      - {id: p, method: entity.create.point, params: {x: 1}}
      - {id: q, method: entity.create_point, params: {x: "${p.x}"}}
  - task_id: t2
    agent_id: b
    description: Merge it
    dependencies: [t1]
    check: conflicts == 0
    operations:
      - {method: workspace.merge, params: {source_workspace_id: "${tasks.t1.workspace_id}", target_workspace_id: "${agent.workspace_id}"}}
`

func TestAScenarioFileTellsAllThatIsWrongWithIt(t *testing.T) {
	for _, c := range []struct {
		name string
		old  string
		new  string
		want []string
	}{
		{"nothing", "", "", nil},
		{"name", "scenario_name: plan", "scenario_name: 1 plan", []string{`1: scenario_name: "1 plan" is not allowed`}},
		{"an unknown field", "description: A plan", "description: A plan\ncolour: red", []string{"3: colour: unknown field"}},
		{"no agents", "agent_id: a, role", "agent_id: other, role", []string{`10: task_sequence[0].agent_id: "a" is not allowed; allowed: an agent of agent_assignments`}},
		{"role", "role_name: modeler", "role_name: boss", []string{`4: agent_assignments[0].role_name: "boss" is not allowed`}},
		{"a shared workspace", "workspace_id: ws_b", "workspace_id: ws_a", []string{`5: agent_assignments[1].workspace_id: "ws_a" is not allowed; allowed: a workspace of its own`}},
		{"main", "workspace_id: ws_b", "workspace_id: main", []string{`5: agent_assignments[1].workspace_id: "main" is not allowed`}},
		{"pattern", "pattern: mixed", "pattern: wild", []string{`6: workflow_pattern: "wild" is not allowed; allowed: parallel, sequential, mixed`}},
		{"a missing dependency", "[t1]", "[t3]", []string{`18: task_sequence[1].dependencies[0]: "t3" is not allowed; allowed: a task of task_sequence`}},
		{"itself", "[t1]", "[t2]", []string{`18: task_sequence[1].dependencies[0]: "t2" is not allowed; allowed: another task than itself`}},
		{"a cycle", "Make a point\n", "Make a point\n    dependencies: [t2]\n", []string{"12: task_sequence[0].dependencies: a cycle: t1 → t2 → t1"}},
		{"a role's limits", "role_name: modeler", "role_name: validator", []string{"9: task_sequence[0].required_operations: task t1 needs entity.create_point, which role validator does not allow"}},
		{"a method", "entity.create.point", "entity.create_cube", []string{`13: task_sequence[0].operations[0].method: "entity.create_cube" is not allowed; allowed: a method: entity.create_point`}},
		{"an unknown reference", "${p.x}", "${r.x}", []string{"14: task_sequence[0].operations[1].params.x: ${r.x}: there is no earlier operation r; there are p"}},
		{"a reference to itself", "${p.x}", "${q.x}", []string{"${q.x}: there is no earlier operation q"}},
		{"a task that is no dependency", "${p.x}", "${tasks.t2.a.x}", []string{"${tasks.t2.a.x}: t2 is not among the dependencies"}},
		{"an operation that another task lacks", "${tasks.t1.workspace_id}", "${tasks.t1.r.x}", []string{"task t1 has no operation with the id r"}},
		{"rework", "${p.x}", "${rework.x}", []string{"only rework_operations know"}},
		{"a check", "conflicts == 0", "conflicts + 1", []string{"19: task_sequence[1].check: want a bool, got int"}},
		{"a check of nothing", "conflicts == 0", "conflict == 0", []string{"19: task_sequence[1].check: 1:1: undeclared reference to 'conflict'"}},
		{"a rework of nothing to do", "check: conflicts == 0", "check: conflicts == 0\n    rework: t1", []string{"20: task_sequence[1].rework: task t1 has no rework_operations"}},
		{"a rework without a check", "check: conflicts == 0", "rework: t1", []string{"19: task_sequence[1].rework: without a check nothing is ever rejected", "no rework_operations"}},
		{"both a worker and operations", "check: conflicts == 0", "worker: claude", []string{`19: task_sequence[1].worker: "claude" is not allowed`}},
		{"ids", "id: q", "id: p", []string{`14: task_sequence[0].operations[1].id: "p" is not allowed; allowed: a different id`}},
		{"a reserved id", "id: q", "id: tasks", []string{`operations[1].id: "tasks" is not allowed`}},
		{"a parallel one that waits", "pattern: mixed", "pattern: parallel", nil},
		{"several", "pattern: mixed\nsuccess_criteria: It is done", "pattern: wild\nsuccess_criteria: ''", []string{"6: workflow_pattern", "7: success_criteria"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(plan, c.old, c.new, 1)
			expect.Must(t, c.old == "" || text != plan, "nothing was replaced")
			_, err := parseScenario("plan.yaml", []byte(text), testRoles(t))
			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			expect.Must(t, len(lines) == len(c.want), "got %v, want %v", err, c.want)
			for i, want := range c.want {
				expect.True(t, strings.HasPrefix(lines[i], "plan.yaml:") && strings.Contains(lines[i], want), "got  %s\nwant %s", lines[i], want)
			}
			var e *core.Error
			if err != nil && (!errors.As(err, &e) || e.Code != core.InvalidInput || e.Details["problems"] == nil) {
				t.Errorf("%+v", err)
			}
		})
	}
}

func TestAPatternDecidesWhoWaits(t *testing.T) {
	task := func(id, agent string, after ...string) PlannedTask {
		return PlannedTask{TaskID: id, AgentID: agent, Brief: Brief{Dependencies: after}}
	}
	judge := func(id, agent, rework string) PlannedTask {
		return PlannedTask{TaskID: id, AgentID: agent, Brief: Brief{Rework: rework}}
	}
	for _, c := range []struct {
		name    string
		pattern Pattern
		tasks   []PlannedTask
		after   string // of the last task
		wrong   string
	}{
		{"sequential ones wait for the one before", Sequential, []PlannedTask{task("a", "x"), task("b", "y"), task("c", "x")}, "b", ""},
		{"and for more", Sequential, []PlannedTask{task("a", "x"), task("b", "y"), task("c", "x", "a")}, "a b", ""},
		{"and for what they may reject", Sequential, []PlannedTask{task("a", "x"), task("b", "y"), judge("c", "z", "a")}, "b a", ""},
		{"which is no later one", Sequential, []PlannedTask{judge("a", "x", "b"), task("b", "y")}, "a", "a task before this one"},
		{"nor itself", Sequential, []PlannedTask{task("a", "x"), judge("b", "y", "b")}, "a", "a task before this one"},
		{"but for no later one", Sequential, []PlannedTask{task("a", "x", "b"), task("b", "y")}, "a", "a task before this one"},
		{"parallel ones don't", Parallel, []PlannedTask{task("a", "x"), task("b", "y")}, "", ""},
		{"but the last may, for all", Parallel, []PlannedTask{task("a", "x"), task("b", "y"), task("c", "x", "a", "b")}, "a b", ""},
		{"not for some", Parallel, []PlannedTask{task("a", "x"), task("b", "y"), task("c", "z", "a")}, "a", "only the last task may wait, and for all others"},
		{"nor one in between", Parallel, []PlannedTask{task("a", "x"), task("b", "y", "a"), task("c", "z")}, "", "only the last task may wait"},
		{"nor two by one agent", Parallel, []PlannedTask{task("a", "x"), task("b", "x")}, "", "runs at the same time"},
		{"mixed ones are left alone", Mixed, []PlannedTask{task("a", "x"), task("b", "x", "a")}, "a", ""},
	} {
		s := Scenario{Pattern: c.pattern, Tasks: c.tasks}
		var problems problems
		s.applyPattern(&problems)
		expect.True(t, (c.wrong != "" || len(problems) == 0) && (c.wrong == "" || len(problems) != 0 && strings.Contains(problems[0].err.Error(), c.wrong)),
			"%s: %v", c.name, problems)
		expect.Is(t, strings.Join(s.Tasks[len(s.Tasks)-1].Dependencies, " "), c.after, c.name, "waits for")
	}
}

func TestAnOverrideIsCheckedLikeTheScenario(t *testing.T) {
	all := expect.Of(builtinScenarios())(t)
	s := all["assembly_design"]
	for pair, want := range map[string]string{
		"lid_designer=optimizer":  "",
		"lid_designer=validator":  "which role validator does not allow",
		"lid_designer":            "AGENT=ROLE",
		"nobody=modeler":          "AGENT=ROLE",
		"lid_designer=boss":       "AGENT=ROLE",
		"integrator=integrator":   "",
		"housing_designer=wizard": "AGENT=ROLE",
	} {
		got, err := s.override([]string{pair}, testRoles(t))
		expect.Says(t, err, want, pair)
		agent, role, _ := strings.Cut(pair, "=")
		expect.True(t, want != "" || got.seat(agent).RoleName == role, "%s: %+v", pair, got.Agents)
	}
	expect.Is(t, s.seat("lid_designer").RoleName, "modeler", "the scenario itself was changed")
}

func FuzzScenarioFile(f *testing.F) {
	f.Add(plan)
	f.Add(strings.ReplaceAll(plan, "t1", "t2"))
	f.Add("{}")
	f.Add("task_sequence: [{operations: [{method: x, params: {a: '${b'}}], rework: a, check: '1 +'}]")
	roles := testRoles(f)
	f.Fuzz(func(t *testing.T, text string) {
		lines := 1 + strings.Count(text, "\n") + strings.Count(text, "\r")
		s, err := parseScenario("a.yaml", []byte(text), roles)
		if err == nil {
			again, problems := s.check(roles)
			expect.Must(t, len(problems) == 0 && string(core.MustEncode(again)) == string(core.MustEncode(s)), "%q: %v", text, problems)
			return
		}
		problems, _ := core.AsError(err).Details["problems"].([]document.Problem)
		for _, p := range problems {
			expect.Must(t, p.Line >= 1 && p.Line <= lines && p.Field != "" && p.Message != "", "%q: %+v", text, p)
		}
	})
}
