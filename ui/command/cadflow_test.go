package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// flows uses the commands about workflows of CAD agents.
func (w *walk) flows() {
	t := w.t
	all := w.objects("cad scenario list")
	expect.True(t, len(all) == 3 && all[0]["scenario_name"] == "assembly_design" && all[0]["workflow_pattern"] == "mixed", "scenarios: %v", all)
	w.do("cad scenario list")
	w.text("cad scenario list", "design_review_loop", "parallel", "builtin")
	got := w.do("cad scenario show design_review_loop")
	expect.True(t, len(got["task_sequence"].([]any)) == 3, "scenario: %v", got)
	out := filepath.Join(w.dir, "out")
	flow := w.do("cad scenario run assembly_design --out " + out + " --wait --wait-timeout 1m")
	if flow["execution_state"] != "completed" || flow["completion_percentage"] != 100.0 || len(flow["agent_failures"].([]any)) != 0 ||
		flow["metrics"].(map[string]any)["max_parallel_agents"].(float64) < 2 {
		t.Errorf("run: %v", flow["metrics"])
	}
	for _, name := range []string{"step", "stl", "3mf", "svg"} {
		info, err := os.Stat(filepath.Join(out, "assembly."+name))
		expect.True(t, err == nil && info.Size() >= 1000, "assembly.%s: %v %v", name, info, err)
	}
	id := flow["workflow_id"].(string)
	w.do("cad workflow show " + id)
	w.text("cad workflow show "+id, "t3b", "integrator", "100%")
	w.do("cad workflow wait " + id)
	w.do("cad workflow list")
	w.text("cad workflow list --status completed", id, "assembly_design")

	w.do("cad agent shutdown lid_designer")
	tasks := w.objects("cad decompose 'box with lid 100x80x20 mm'")
	expect.True(t, len(tasks) == 3 && tasks[0]["task_id"] == "box" && tasks[0]["unassigned"] == true && len(tasks[0]["operations"].([]any)) >= 10,
		"decompose: %v", tasks)
	w.text("cad decompose 'shaft diameter 20 length 100'", "shaft_modeler", "unassigned")
	w.do("cad agent create moe --role modeler")
	w.do("cad agent create ivy --role integrator")
	expect.Row(t, w.do("cad assign box moe --wait"), "status", "completed", "agent_id", "moe")
	expect.Row(t, w.do("cad assign merge ivy"), "status", "blocked")
	plan := tasks[0]["workflow_id"].(string)
	w.do("cad agent create max --role modeler")
	expect.Row(t, w.do("cad assign lid max --wait"), "status", "completed")
	expect.Row(t, w.do("cad workflow wait "+plan), "execution_state", "completed")
	own := w.do(`cad assign '{"description":"A point","operations":[{"method":"entity.create_point","params":{"entity_id":"lone","coordinates":[1,2]}}],"check":"size(entities) > 3"}' max --wait`)
	expect.True(t, own["status"] == "completed" && own["swarm_task_id"] != "", "assign: %v", own)

	stuck := w.object("cad decompose 'shaft 20x50 mm' --run")
	stuckID := stuck["workflow_id"].(string)
	w.do("cad workflow wait " + stuckID)
	for line, want := range map[string]string{
		"cad scenario show nothing":                                                     "INVALID_INPUT scenario",
		"cad scenario run nothing":                                                      "INVALID_INPUT scenario",
		"cad scenario run assembly_design --override x=y":                               "INVALID_INPUT override",
		"cad scenario run assembly_design --override integrator=boss":                   "INVALID_INPUT override",
		"cad scenario run assembly_design --kernel acis":                                "INVALID_INPUT kernel",
		"cad decompose 'something nice'":                                                "INVALID_INPUT goal",
		"cad decompose 'a shaft'":                                                       "INVALID_INPUT goal",
		"cad decompose 'shaft 20x50' --wait":                                            "INVALID_INPUT wait",
		"cad decompose 'a teapot' --agent nobody":                                       "NOT_FOUND agent",
		"cad assign nothing moe":                                                        "NOT_FOUND task",
		"cad assign box nobody":                                                         "NOT_FOUND agent_id",
		"cad assign " + plan + "/box moe":                                               "CONFLICT task",
		`cad assign '{"description":"x"}' moe`:                                          "INVALID_INPUT operations",
		`cad assign '{"description":"x","colour":1}' moe`:                               "INVALID_INPUT colour",
		`cad assign '{"description":"x","operations":[{"method":"measure.mass"}]}' moe`: "INVALID_INPUT required_operations[0]",
		"cad workflow show wf_1":                                                        "INVALID_INPUT workflow_id",
		"cad workflow retry " + stuckID:                                                 "CONFLICT workflow_id",
		"cad workflow retry " + stuckID + " --task x":                                   "INVALID_INPUT task",
		"cad workflow reassign " + stuckID + " shaft moe":                               "CONFLICT task",
		"cad workflow cancel " + stuckID:                                                "CONFLICT workflow_id",
	} {
		w.refuses(line, want)
		args := expect.Of(command.Split(line))(w.t)
		w.used[command.Describe(args).Path] = true
	}
}

const crew = `
roles:
  - name: turner
    description: Makes what turns
    allowed_operations: [entity.create_circle, solid.extrude, file.export]
    example_tasks: [Turn a shaft]
scenarios:
  - scenario_name: turning
    description: Turns a shaft
    agent_assignments:
      - {agent_id: tina, role_name: turner, workspace_id: ws_tina}
    workflow_pattern: sequential
    success_criteria: A shaft
    task_sequence:
      - task_id: turn
        agent_id: tina
        description: Turn it
        check: size(solids) == 1 && size(files) == 1
        operations:
          - {id: c, method: entity.create_circle, params: {center: [0, 0, 0], radius: 5}}
          - {method: solid.extrude, params: {entity_ids: ["${c.entity_id}"], distance: 50}}
          - {method: file.export, params: {file_path: shaft.step, format: STEP}}
`

func TestASwarmFileBringsRolesAndScenarios(t *testing.T) {
	d := newDeck(t)
	file := filepath.Join(d.dir, "swarm.yaml")
	write := func(text string) { d.no(os.WriteFile(file, []byte(text), 0o600)) }
	write(crew)
	for _, want := range []string{"created", "unchanged"} {
		if all := d.objects("up " + file); len(all) != 2 || all[0]["object"] != "role" || all[1]["object"] != "scenario" || all[0]["action"] != want || all[1]["action"] != want {
			t.Errorf("up: %v, want %s", all, want)
		}
	}
	out := filepath.Join(d.dir, "out")
	expect.Row(t, d.object("cad scenario run turning --wait --out "+out), "execution_state", "completed")
	expect.Of(os.Stat(filepath.Join(out, "shaft.step")))(t)
	for change, want := range map[string]string{
		"role_name: turner>role_name: cook":                     `:11: scenarios[0].agent_assignments[0].role_name: "cook" is not allowed`,
		"method: solid.extrude>method: solid.boolean":           ":15: scenarios[0].task_sequence[0].required_operations: task turn needs solid.boolean, which role turner does not allow",
		"name: turner\n>name: modeler\n":                        ":3: roles[0].name: role modeler: the program has one of this name",
		"scenario_name: turning>scenario_name: assembly_design": ":8: scenarios[0].scenario_name: scenario assembly_design: the program has one",
		"[entity.create_circle,>[entity.create_cube,":           `:5: roles[0].allowed_operations`,
		"${c.entity_id}>${d.entity_id}":                         ":21: scenarios[0].task_sequence[0].operations[1].params.entity_ids[0]: ${d.entity_id}: there is no earlier operation d",
	} {
		was, now, _ := strings.Cut(change, ">")
		write(strings.Replace(crew, was, now, 1))
		_, message, _ := d.fails(1, "up "+file)
		expect.True(t, strings.Contains(message, want), "%s: %s, want %s", change, message, want)
	}
	all := d.objects("cad scenario list")
	expect.True(t, len(all) == 4 && fmt.Sprint(all[3]["builtin"]) == "false", "%v", all)
}

func TestASkillCarriesOutACADOperation(t *testing.T) {
	d := newDeck(t)
	d.line("cad agent create mona --role modeler --workspace ws_part")
	file := filepath.Join(d.dir, "round.yaml")
	d.no(os.WriteFile(file, []byte(`name: draw-circle
version: 1.0.0
description: Draws a circle
parameters_schema: {type: object, properties: {agent_id: {type: string}, center: {type: array}, radius: {type: number}}, required: [agent_id]}
runner: {kind: cad, method: entity.create_circle}
`), 0o600))
	d.line("skill load " + file)
	got := d.object(`skill invoke draw-circle --params '{"agent_id":"mona","center":[0,0],"radius":3}' --wait`)
	result, _ := got["result"].(map[string]any)
	expect.True(t, got["state"] == "completed" && result["entity_id"] == "ws_part_circle_1", "%v", got)
	expect.Row(t, d.object("cad agent show mona"), "success_count", 1.0)
	marks := 0 // by which it would have happened once, had it been tried again
	d.no(d.eng.Audit.View(t.Context(), "t_default", func(tx *audit.Tx) error {
		return tx.Scan("cad.mark", nil, nil, false, func(_, _ []byte) (bool, error) { marks++; return true, nil })
	}))
	expect.Is(t, marks, 0, "marks are left of a task that is over")
	args := expect.Of(command.Split(`skill invoke draw-circle --params '{"agent_id":"mona","center":[0,0],"radius":-3}' --wait -o json`))(d.t)
	code, out, _ := d.run(args...)
	expect.True(t, code == command.ExitFailed && strings.Contains(out, "INVALID_GEOMETRY"), "exit %d: %s", code, out)
	expect.Row(t, d.object("cad agent show mona"), "error_count", 1.0)
	d.no(os.WriteFile(file, []byte("name: bad-one\nversion: 1.0.0\ndescription: x\nparameters_schema: {}\nrunner: {kind: cad, method: entity.dream}\n"), 0o600))
	_, message, _ := d.fails(1, "skill check "+file)
	expect.True(t, strings.Contains(message, "runner.method"), "%v", message)
}

func TestASkillOfAnAgentActsAsItsCADAgent(t *testing.T) {
	d := newDeck(t)
	d.line("cad agent create mona --role modeler --workspace ws_part")
	d.line("cad agent create vera --role modeler")
	d.line("agent create archie --project p --role r --task x -- sh -c 'exec cat'")
	file := filepath.Join(d.dir, "round.yaml")
	d.no(os.WriteFile(file, []byte(`name: draw-circle
version: 1.0.0
description: Draws a circle
parameters_schema: {type: object, properties: {agent_id: {type: string}, center: {type: array}, radius: {type: number}}}
runner: {kind: cad, method: entity.create_circle}
`), 0o600))
	d.line("skill load " + file)
	archie := core.Caller{Tenant: "t_default", Name: "archie", Kind: core.Agent, Door: core.DoorMCP}
	for _, c := range []struct{ before, params, want string }{
		{"", `{"agent_id":"mona","center":[0,0],"radius":3}`, "archie of the fleet is bound to no CAD agent"},
		{"cad agent bind mona --fleet archie", `{"center":[0,0],"radius":3}`, "ws_part_circle_1"},
		{"", `{"agent_id":"vera","center":[0,0],"radius":3}`, "archie of the fleet acts as CAD agent mona alone"},
	} {
		if c.before != "" {
			d.line(c.before)
		}
		made := expect.Of(d.eng.Skills.Invoke(t.Context(), archie, skill.Invoke{Skill: "draw-circle", Params: core.Raw(c.params)}))(d.t)
		made = expect.Of(d.eng.Skills.Wait(t.Context(), archie, made.AgentID))(d.t)
		expect.Has(t, string(core.MustEncode(made)), c.want, c.params)
	}
	expect.Row(t, d.object("cad agent show vera"), "operation_count", 0.0)
}
