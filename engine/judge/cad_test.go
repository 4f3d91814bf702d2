package judge_test

import (
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// models asks for an operation of a CAD agent with some effects.
func models(by core.Caller, method string, effects ...string) judge.Ask {
	ask := execBy(by, `{"agent_id":"ann","method":"`+method+`","workspace_id":"ws_ann","params":{}}`)
	ask.Gate = judge.GateCAD
	ask.Action = judge.Action{Kind: judge.KindCAD, Tool: method, Args: ask.Action.Args, Effects: effects}
	return ask
}

func TestDefaultRulesForCADOperations(t *testing.T) {
	f := setup(t)
	engine := core.Self(acme, "workflow")
	for name, c := range map[string]struct {
		ask    judge.Ask
		want   judge.Decision
		reason string
		risk   judge.Risk
	}{
		"reads":                    {models(robot, "entity.list", "read"), judge.Approve, "cad.own", judge.Low},
		"changes its own":          {models(robot, "solid.extrude", "write"), judge.Approve, "cad.own", judge.Low},
		"makes a workspace":        {models(robot, "workspace.create", "create"), judge.Approve, "cad.own", judge.Low},
		"imports a file":           {models(robot, "file.import", "import"), judge.Approve, "cad.own", judge.Low},
		"exports a new file":       {models(robot, "file.export", "export"), judge.Approve, "cad.own", judge.Low},
		"overwrites a file":        {models(robot, "file.export", "export", "overwrite"), judge.HITL, "cad.overwrite", judge.Medium},
		"overwrites, operator":     {models(alice, "file.export", "overwrite", "export"), judge.HITL, "cad.overwrite", judge.Medium},
		"deletes a file":           {models(alice, "file.delete", "destroy"), judge.Deny, "cad.destroy", judge.High},
		"deletes, agent":           {models(robot, "file.delete", "destroy"), judge.Deny, "cad.destroy", judge.High},
		"merges":                   {models(robot, "workspace.merge", "merge"), judge.HITL, "cad.merge", judge.Medium},
		"merges, engine":           {models(engine, "workspace.merge", "merge"), judge.HITL, "cad.merge", judge.Medium},
		"merges, operator":         {models(alice, "workspace.merge", "merge"), judge.Approve, "operator.workflow", judge.Medium},
		"merges elsewhere":         {models(alice, "workspace.merge", "merge", "elsewhere"), judge.Approve, "operator.workflow", judge.Medium},
		"changes another":          {models(robot, "solid.extrude", "write", "elsewhere"), judge.HITL, "cad.elsewhere", judge.Medium},
		"changes another, told to": {models(alice, "solid.extrude", "elsewhere", "write"), judge.Approve, "operator.workflow", judge.Medium},
		"a name is no evidence":    {models(robot, "entity.list", "destroy"), judge.Deny, "cad.destroy", judge.High},
	} {
		v := f.Evaluate(t.Context(), acme, c.ask)
		if v.Decision != c.want || v.ReasonCode != c.reason || v.Risk != c.risk || v.Rationale == "" {
			t.Errorf("%s: %s %s at %s risk, want %s %s %s", name, v.Decision, v.ReasonCode, v.Risk, c.want, c.reason, c.risk)
		}
	}
}
