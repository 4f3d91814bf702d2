package command_test

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// told are the events of a query in their order, each by its kind and what tells it apart.
func (d *deck) told(query string) (kinds []string, all []map[string]any) {
	d.t.Helper()
	for _, e := range d.objects("dag events --page-size 100 " + query) {
		all = append([]map[string]any{e}, all...)
	}
	for _, e := range all {
		kind := str(e["kind"])
		switch kind {
		case "history_append":
			kind += " " + str(e["list"])
		case "tool_call":
			kind += " " + str(e["server"]) + "/" + str(e["tool"])
		case "tool_result":
			kind += " " + str(e["status"])
		case "interruption":
			kind += " " + str(e["reason"])
		case "run_finished":
			kind += " " + str(e["exit"])
		}
		kinds = append(kinds, kind)
	}
	return kinds, all
}

// leadsBack checks that an event's lineage holds all the others.
func (d *deck) leadsBack(from map[string]any, all []map[string]any) {
	d.t.Helper()
	seen := map[string]bool{}
	for _, s := range d.objects("dag lineage " + str(from["event_id"]) + " --depth 100") {
		node, _ := s["node"].(map[string]any)
		seen[str(node["id"])] = true
	}
	for _, e := range all {
		id := str(e["event_id"])
		expect.True(d.t, id == str(from["event_id"]) || seen[id], "%s of %s does not lead back to %s %s", from["kind"], from["agent_id"], e["kind"], e["list"])
	}
}

func TestEveryAnswerLeadsBackToWhoAsked(t *testing.T) {
	d := newDeck(t)
	d.maker()
	for name, c := range map[string]struct {
		query func() string
		want  string
		who   string
	}{
		"a command": {
			func() string {
				return "--task " + str(d.object(`task dispatch --kind exec.run --input '{"argv":["true"]}' --wait`)["task_id"])
			},
			"run_started, history_append decisions, tool_call exec.run/exec.run, history_append decisions, tool_result ok, history_append result, run_finished success", "alice",
		},
		"a command that fails": {
			func() string {
				_, out, _ := d.run("-o", "json", "task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["false"]}`, "--max-attempts", "1", "--wait")
				_, id, _ := strings.Cut(out, `"task_id":"`)
				id, _, _ = strings.Cut(id, `"`)
				return "--task " + id
			},
			"run_started, history_append decisions, tool_call exec.run/exec.run, tool_result error, history_append result, run_finished error", "alice",
		},
		"a command that asks": {
			func() string {
				task, approval := d.destructive("", "rm", "-rf", "nothing-there")
				d.line("approval approve " + approval + " --reason fine")
				d.until("task list --match "+task, "status", "succeeded")
				return "--task " + task
			},
			"run_started, history_append decisions, tool_call exec.run/exec.run, history_append decisions, tool_result ok, history_append result, run_finished success", "alice",
		},
		"a subagent": {
			func() string {
				d.write("greet.yaml", `{"name": "greet", "version": "1.0.0", "description": "Greets.", "runner": {"kind": "builtin", "name": "echo"}, "parameters_schema": {"type": "object"}}`)
				d.line("skill load greet.yaml")
				a := str(d.object("subagent spawn --name helper")["agent_id"])
				d.line("subagent assign " + a + ` greet --params '{"to":"you"}' --wait`)
				return "--agent " + a
			},
			"run_started, history_append main, history_append decisions, history_append state, tool_call skill/greet@1.0.0, tool_result ok, history_append main, history_append bus, history_append decisions, history_append result, history_append state, run_finished success", "alice",
		},
		"a CAD agent": {
			func() string {
				d.models("mona", fmt.Sprintf(boxOf, 40, 30, 20, "block"))
				d.line("cad agent shutdown mona")
				return "--agent mona"
			},
			"run_started, tool_call cad/solid.primitive, history_append decisions, tool_result ok, run_finished success", "alice",
		},
		"an agent that asks": {
			func() string {
				task, approval := d.asks("robot", `echo '{"type":"tool_result","call_id":"c","status":"ok"}'; echo '{"type":"message","text":"done"}'; echo '{"type":"result","status":"succeeded"}'`, "")
				d.line("approval approve " + approval + " --reason fine")
				d.until("task list --match "+task, "status", "succeeded")
				return "--task " + task
			},
			"run_started, history_append decisions, history_append main, tool_call exec/db.drop, history_append decisions, history_append decisions, tool_result ok, history_append main, history_append decisions, history_append result, run_finished success", "alice",
		},
		"an agent whose result is rejected": {
			func() string {
				task, approval := d.asks("doubt", `echo '{"type":"result","status":"succeeded","confidence":0.5}'`, "")
				d.line("approval deny " + approval + " --reason no")
				d.until("task list --match "+task, "status", "failed")
				return "--task " + task
			},
			"run_started, history_append decisions, history_append main, tool_call exec/db.drop, history_append decisions, history_append decisions, tool_result canceled, interruption approval_denied, history_append decisions, history_append result, run_finished error", "alice",
		},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, all := d.told(c.query())
			expect.Is(t, strings.Join(kinds, ", "), c.want)
			expect.Is(t, str(all[0]["asked_by"]), c.who, "asked by")
			d.leadsBack(all[len(all)-1], all)
		})
	}
	out := d.line("audit reconcile")
	expect.True(t, strings.Contains(out, "no unexplained") || strings.Contains(out, "ok"), "%v", out)
}
