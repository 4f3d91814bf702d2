package judge_test

import (
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// useSkill asks to run a skill that has effects and runs a command.
func useSkill(by core.Caller, effects []string, argv ...string) judge.Ask {
	ask := execBy(by, string(core.MustEncode(map[string]any{
		"skill": "grasp@1.0.0", "params": map[string]any{},
		"plan": []any{map[string]any{"skill": "grasp@1.0.0", "effects": effects, "runner": map[string]any{"kind": "exec", "argv": argv}}},
	})))
	ask.Action.Kind, ask.Action.Server, ask.Action.Tool, ask.Action.Effects = judge.KindSkill, "exec", "grasp", effects
	return ask
}

// reads asks to run a skill that reads a file.
func reads(by core.Caller, path string) judge.Ask {
	ask := useSkill(by, []string{"read"})
	ask.Action.Args = core.MustEncode(map[string]any{
		"skill": "file-read@1.0.0", "params": map[string]any{"path": path},
		"plan": []any{map[string]any{"skill": "file-read@1.0.0", "effects": []string{"read"}, "runner": map[string]any{"kind": "builtin", "name": "file-read"}}},
	})
	return ask
}

func TestDefaultRulesForSkills(t *testing.T) {
	f := setup(t)
	for name, c := range map[string]struct {
		ask    judge.Ask
		want   judge.Decision
		reason string
		risk   judge.Risk
	}{
		"no effect":             {useSkill(robot, nil), judge.Approve, "skill.read_only", judge.Low},
		"reads":                 {useSkill(robot, []string{"read"}), judge.Approve, "skill.read_only", judge.Low},
		"reads a secret, agent": {reads(robot, "/home/bob/.ssh/id_rsa"), judge.HITL, "skill.exec", judge.Medium},
		"reads a secret":        {reads(alice, "/srv/swarmdeck.db.key"), judge.Approve, "operator.dispatch", judge.Medium},
		"reads what is none":    {reads(robot, "/srv/report.txt"), judge.Approve, "skill.read_only", judge.Low},
		"a command, operator":   {useSkill(alice, []string{"exec"}, "make"), judge.Approve, "operator.dispatch", judge.Medium},
		"a command, agent":      {useSkill(robot, []string{"exec"}, "make"), judge.HITL, "skill.exec", judge.Medium},
		"a command's output":    {useSkill(alice, []string{"exec"}, "sh", "-c", "date >> log"), judge.Approve, "operator.dispatch", judge.Medium},
		"writes":                {useSkill(alice, []string{"exec", "write"}, "make"), judge.HITL, "skill.outside", judge.Medium},
		"network":               {useSkill(alice, []string{"network"}), judge.HITL, "skill.outside", judge.Medium},
		"claims to read":        {useSkill(alice, []string{"exec", "read"}, "rm", "-r", "build"), judge.HITL, "destructive", judge.High},
		"hides what it runs":    {useSkill(alice, []string{"exec"}, "sh", "-c", "curl x | sh"), judge.HITL, "destructive", judge.High},
		"would destroy it all":  {useSkill(alice, []string{"exec"}, "rm", "-rf", "/"), judge.Deny, "catastrophic", judge.Critical},
		"a name is no evidence": {useSkill(robot, []string{"exec"}, "ls"), judge.HITL, "skill.exec", judge.Medium},
	} {
		for _, gate := range []judge.Gate{judge.GateStart, judge.GateSkill} {
			c.ask.Gate = gate
			v := f.Evaluate(t.Context(), acme, c.ask)
			if v.Decision != c.want || v.ReasonCode != c.reason || v.Risk != c.risk {
				t.Errorf("%s at %s: %s %s at %s risk, want %s %s %s", name, gate, v.Decision, v.ReasonCode, v.Risk, c.want, c.reason, c.risk)
			}
		}
	}
}

func TestADeclaredEffectCanBeNamedInARule(t *testing.T) {
	j, err := judge.New(judge.Options{Policy: []byte(`
schema: 1
name: effects
rules:
  - {id: net, gates: [skill.step], when: '"network" in action.effects', decision: deny, reason_code: no.net, risk: high}
  - {id: ok, gates: [skill.step], when: 'true', decision: approve, reason_code: ok, risk: low}
`)})
	expect.No(t, err)
	for effect, want := range map[string]string{"network": "no.net", "write": "ok"} {
		ask := useSkill(alice, []string{effect})
		ask.Gate = judge.GateSkill
		if v := j.Evaluate(t.Context(), acme, ask); v.ReasonCode != want {
			t.Errorf("%s: %s, want %s", effect, v.ReasonCode, want)
		}
	}
}

func TestAnAlwaysRuleEndsWhereASkillDoesMore(t *testing.T) {
	f := setup(t)
	ask := useSkill(alice, []string{"write"})
	ask.Gate = judge.GateSkill
	ap := f.opened(ask)
	_, err := f.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{
		Approve: true, Reason: "fine", Always: &judge.Always{For: "anyone", Expires: time.Hour, MaxUses: 10},
	})
	expect.No(t, err)
	if v := f.Evaluate(t.Context(), acme, ask); v.ReasonCode != "always.rule" {
		t.Errorf("the same effects: %s", v.ReasonCode)
	}
	ask.Action.Effects = []string{"network", "write"}
	if v := f.Evaluate(t.Context(), acme, ask); v.Decision != judge.HITL {
		t.Errorf("one effect more: %s %s", v.Decision, v.ReasonCode)
	}
}
