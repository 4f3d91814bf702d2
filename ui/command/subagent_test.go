package command_test

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

const reachFile = `
name: reach
version: 1.0.0
description: reaches out
parameters_schema: {type: object, properties: {to: {type: string}}, required: [to]}
tags: [motion]
runner: {kind: builtin, name: echo}
`

// subagents is the part of the walk through every command.
func (w *walk) subagents() {
	t := w.t
	w.write("reach.yaml", reachFile)
	w.write("for-ever.yaml", strings.Replace(strings.Replace(reachFile, "reach", "for-ever", 1), ", required: [to]", "", 1))
	w.do("skill load reach.yaml for-ever.yaml")

	made := w.do(`skill invoke reach --params '{"to":"there"}' --name Arm-1 --metadata '{"k":1}' --priority 60 --wait`)
	id := str(made["agent_id"])
	if made["state"] != "completed" || made["skill"] != "reach@1.0.0" || made["name"] != "Arm-1" || made["assigned_skill"] != "reach" ||
		fmt.Sprint(made["results"]) != "map[reach:map[to:there]]" || made["task_id"] == nil || fmt.Sprint(made["metadata"]) != "map[k:1]" {
		t.Errorf("invoke: %v", made)
	}
	all := w.objects("skill executions --agent " + id + " --page 1")
	if len(all) != 2 || all[0]["skill_name"] != "reach" || all[0]["skill_version"] != "1.0.0" || all[0]["status"] != "success" ||
		fmt.Sprint(all[0]["parameters"]) != "map[to:there]" || all[0]["retry_count"] != 0.0 || all[1]["total_count"] != 1.0 {
		t.Errorf("executions: %v", all)
	}
	for line, want := range map[string]int{
		"skill executions --skill reach": 1, "skill executions --skill navigate": 0, "skill executions --status success": 1,
		"skill executions --status failed": 0, "skill executions --match reach": 1, "skill executions --until 1h": 0,
	} {
		got := w.objects(line)
		expect.True(t, len(got) == want, "%s: %v", line, got)
	}
	w.do("skill executions")
	w.text("skill executions", "EXECUTION", "reach@1.0.0", "success", `{"to":"there"}`)
	expect.Row(t, w.do("skill execution "+str(all[0]["execution_id"])), "agent_id", id)
	expect.Row(t, w.do("skill figures reach"), "skill", "reach", "counted", 1.0, "failure_rate", 0.0)
	w.text("skill figures", "reach", "P95", "0%")

	idle := str(w.do("subagent spawn --name Arm-2")["agent_id"])
	expect.Row(t, w.do("subagent assign "+idle+` reach --params '{"to":"here"}' --wait`), "agent_id", idle, "state", "completed")
	got := w.do("subagent show " + idle)
	expect.True(t, fmt.Sprint(got["results"]) == "map[reach:map[to:here]]", "show: %v", got)
	busy := str(w.do("skill invoke for-ever")["agent_id"])
	w.until("subagent show "+busy, "state", "running")
	expect.Row(t, w.do("subagent pause "+busy), "state", "paused")
	w.text("subagent list --state paused", "SUBAGENT", "paused", "for-ever@1.0.0")
	expect.Row(t, w.do("subagent resume "+busy), "state", "running")
	expect.Row(t, w.do("subagent cancel "+busy+" --reason enough"), "state", "failed", "error", "cancelled: enough")
	expect.Row(t, w.do("subagent stop "+str(w.object("subagent spawn")["agent_id"])), "state", "failed", "error", "stopped")
	for line, want := range map[string]int{
		"subagent list": 4, "subagent list --state completed": 2, "subagent list --status failed": 2, "subagent list --match arm-": 2, "subagent list --kind for-ever": 1,
	} {
		got := w.objects(line)
		expect.True(t, len(got) == want, "%s: %v", line, got)
	}
	w.do("subagent list")

	w.write("many.yaml", "- {skill: reach, params: {to: a}, name: one}\n- {skill: reach@1.0.0, params: {to: b}, metadata: {n: 2}}\n")
	w.used["subagent run-parallel"] = true
	if got := w.objects("subagent run-parallel many.yaml --wait"); len(got) != 2 || got[0]["name"] != "one" || got[0]["state"] != "completed" || got[1]["state"] != "completed" {
		t.Errorf("run-parallel: %v", got)
	}
}

func TestASkillThatFailsIsToldByTheExitCode(t *testing.T) {
	d := newDeck(t)
	d.write("reach.yaml", strings.Replace(reachFile, "runner:", "returns_schema: {type: object, required: [done]}\nrunner:", 1))
	d.line("skill load reach.yaml")
	code, out, _ := d.run("skill", "invoke", "reach", "--params", `{"to":"x"}`, "--wait", "-o", "json")
	expect.True(t, code == command.ExitFailed && strings.Contains(out, `"state":"failed"`) && strings.Contains(out, "result.done"), "exit %d: %s", code, out)
	d.write("many.yaml", "- {skill: reach, params: {to: a}}\n")
	code, out, _ = d.run("subagent", "run-parallel", "many.yaml", "--wait")
	expect.True(t, code == command.ExitFailed && strings.Contains(out, "failed"), "exit %d: %s", code, out)
}

func TestBadSubagentLinesAreRefused(t *testing.T) {
	d := newDeck(t)
	d.write("reach.yaml", reachFile)
	d.line("skill load reach.yaml")
	d.write("odd.yaml", "- {skill: reach, param: {}}\n- {name: x}\n- {skill: reach, params: [1]}\n")
	d.write("bad.yaml", "- {skill: reach, params: {to: 1}}\n- {skill: fly}\n")
	d.write("none.yaml", "[]\n")
	for line, want := range map[string]struct {
		exit  int
		code  string
		field string
		says  string
	}{
		"skill invoke reach":                                    {2, "INVALID_INPUT", "params.to", "missing"},
		`skill invoke reach --params '{"to":1}'`:                {2, "INVALID_INPUT", "params.to", "string"},
		`skill invoke reach --params '{"to":"x","at":1}'`:       {2, "INVALID_INPUT", "params.at", "no step"},
		"skill invoke reach --params '['":                       {2, "INVALID_INPUT", "params", "JSON"},
		"skill invoke fly":                                      {1, "NOT_FOUND", "skill", "fly"},
		`skill invoke reach --params '{"to":"x"}' --timeout 0s`: {2, "INVALID_INPUT", "timeout_s", "1s-24h"},
		"skill invoke reach --priority 101":                     {2, "INVALID_INPUT", "", ""},
		"skill executions --status done":                        {2, "INVALID_INPUT", "status", "pending"},
		"skill executions --agent bob":                          {2, "INVALID_INPUT", "agent_id", "UUID"},
		"skill execution bob":                                   {2, "INVALID_INPUT", "execution_id", "UUID"},
		"subagent show bob":                                     {2, "INVALID_INPUT", "agent_id", "UUID"},
		"subagent spawn --metadata '[1]'":                       {2, "INVALID_INPUT", "metadata", "object"},
		"subagent spawn --name " + strings.Repeat("n", 101):     {2, "INVALID_INPUT", "name", "100"},
		"subagent list --state working":                         {2, "INVALID_INPUT", "state", "idle"},
		"subagent list --state idle --status failed":            {2, "INVALID_INPUT", "state", "same"},
		"subagent run-parallel odd.yaml":                        {1, "INVALID_INPUT", "[0].param", "odd.yaml:1"},
		"subagent run-parallel bad.yaml":                        {1, "INVALID_INPUT", "[0].params.to", "[1]: skill"},
		"subagent run-parallel none.yaml":                       {1, "INVALID_INPUT", "items", "1-100"},
		"subagent run-parallel nowhere.yaml":                    {1, "NOT_FOUND", "file", "nowhere"},
	} {
		code, message, details := d.fails(want.exit, line)
		expect.True(t, code == want.code && (want.field == "" || details["field"] == want.field) && strings.Contains(message, want.says),
			"%s: %s %q %v, want %+v", line, code, message, details, want)
	}
	got := d.objects("subagent list")
	expect.True(t, len(got) == 0, "left behind: %v", got)
}
