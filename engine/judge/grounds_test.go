package judge_test

import (
	"context"
	"slices"
	"testing"

	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func (f *fixture) grounds(id string) judge.Grounds {
	f.t.Helper()
	g := expect.Of(f.Grounds(context.Background(), acme, id))(f.t)
	return g
}

func TestGroundsAreTheRuleAndWhatItRead(t *testing.T) {
	f := setup(t)
	a := f.opened(call("fs.write", `{"path":"a"}`))
	g := f.grounds(a.ApprovalID)
	if g.RuleID != a.RuleID || g.PolicyID != "" || !g.Rules || g.When == "" || g.Values["action.effects"] == nil || len(g.Tried) == 0 || g.Gone != "" {
		t.Errorf("of the approval: %+v", g)
	}
	before := f.PolicyVersion(acme)
	p := f.activated(rulesOf(mild, mildCases))
	// What the former policy decided is still explained by it.
	if g = f.grounds(a.DecisionID); g.PolicyVersion != before || g.Rules || g.RuleID != a.RuleID || g.When == "" {
		t.Errorf("after another policy rules: %+v", g)
	}
	d, _ := f.commit(call("fs.write", `{"path":"a"}`))
	if g = f.grounds(d.DecisionID); g.PolicyID != p.PolicyID || g.PolicyName != "mild" || g.RuleID != "all" || g.Decision != "approve" || !g.Rules {
		t.Errorf("of an approval by the new one: %+v", g)
	}
	got := expect.Of(f.Answer(context.Background(), alice, a.ApprovalID, judge.Answer{Reason: "no"}))(t)
	// A person's answer has the grounds of the question.
	if g = f.grounds(got.DecisionID); g.RuleID != a.RuleID || g.Decision != "hitl" || g.ApprovalID != a.ApprovalID {
		t.Errorf("of the answer: %+v", g)
	}
}

func TestGroundsOfAProgramAreWhatItSaid(t *testing.T) {
	s := &scripted{reply: says("hitl", "odd"), bare: true}
	f := setup(t, withPrograms(s))
	p := f.activated(programOf("hitl"))
	a := f.opened(call("fs.write", `{}`))
	s.asked = ""
	g := f.grounds(a.ApprovalID)
	if !g.Program || g.PolicyID != p.PolicyID || g.Rationale != "because" || !g.Unsandboxed || g.When != "" || s.asked != "" {
		t.Errorf("%+v; the program was asked %q", g, s.asked)
	}
}

func TestGroundsThatAreNotKnownSaySo(t *testing.T) {
	f := setup(t)
	_, err := f.Grounds(context.Background(), acme, "ap_00000_0000000009")
	expect.Fails(t, err, "of an unknown approval")
	_, err = f.Grounds(context.Background(), acme, "x")
	expect.Fails(t, err, "of no id")
	d, _ := f.commit(execBy(alice, argv("date"))) // the task is not known here
	if g := f.grounds(d.DecisionID); g.Gone == "" || g.RuleID != d.RuleID || g.PolicyVersion == "" {
		t.Errorf("%+v", g)
	}
}

func TestStandingSaysWhatRulesAndWhetherProgramsAreJailed(t *testing.T) {
	s := &scripted{reply: says("approve", "fine"), bare: true}
	f := setup(t, withPrograms(s))
	at, err := f.Standing(context.Background(), acme)
	if err != nil || at.PolicyID != judge.BasePolicy || at.Rules == 0 || at.Unjailed == "" || at.Version != f.PolicyVersion(acme) {
		t.Fatalf("%+v, %v", at, err)
	}
	s.bare = false
	p := f.activated(programOf("approve"))
	if at, err = f.Standing(context.Background(), acme); err != nil || at.PolicyID != p.PolicyID || at.Unjailed != "" || at.Rules != 0 {
		t.Fatalf("%+v, %v", at, err)
	}
}

func TestTryingCasesKeepsNothing(t *testing.T) {
	f := setup(t)
	p := f.propose(alice, rulesOf(mild, mildCases+"\n"+`{"name":"wrong","input":{"action":{"tool":"x"}},"expect":{"decision":"deny"}}`))
	before := f.events()
	all, sum, err := f.TryCases(context.Background(), alice, p.PolicyID)
	if err != nil || sum != (judge.TestsSummary{Total: 2, Passed: 1, Failed: 1}) || all[1].Passed || all[1].Decision != "approve" {
		t.Fatalf("%+v %+v, %v", all, sum, err)
	}
	if after := f.events(); !slices.Equal(before, after) {
		t.Errorf("recorded %v", after[len(before):])
	}
}
