package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// yielding is a policy that approves all there is.
const yielding = `
schema: 1
name: yielding
rules:
  - {id: all, gates: [task.start, tool.call, skill.step, result, budget, agent.delete, cad.operation, dag.intent, net.connect], when: "true", decision: approve, reason_code: fine, risk: low}
`

const yieldingCases = `{"name":"fine","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"approve"}}`

// result is an ask about what came of a prompt.
func result(text string, confidence float64) judge.Ask {
	ask := call("fs.read", `{}`)
	ask.Gate, ask.Action.Kind, ask.Text, ask.Confidence = judge.GateResult, "agent.prompt", text, &confidence
	return ask
}

func riskiest(ask judge.Ask) judge.Ask {
	ask.Risk = judge.Critical
	return ask
}

func TestR6FloorsHoldUnderEveryPolicy(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"the embedded one":             func(*fixture) {},
		"a table that approves all":    func(f *fixture) { f.activated(rulesOf(yielding, yieldingCases)) },
		"a program that approves all":  func(f *fixture) { f.activated(programOf("approve")) },
		"a table that knows no topics": func(f *fixture) { f.activated(rulesOf(yielding+"topics: []\n", yieldingCases)) },
		"one that excepts the password": func(f *fixture) {
			f.activated(rulesOf(yielding+"topics: [{name: x, words: [y], except: [the password is]}]\n", yieldingCases))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t, withPrograms(&scripted{reply: says("approve", "go.on")}))
			change(f)
			for what, c := range map[string]struct {
				ask      judge.Ask
				decision judge.Decision
				reason   string
			}{
				"a topic":        {result("the password is hunter2", 0.99), judge.HITL, "sensitive.topic"},
				"a band":         {result("done", 0.8), judge.HITL, "confidence.band"},
				"too unsure":     {result("done", 0.5), judge.Deny, "confidence.low"},
				"a catastrophe":  {execBy(alice, `{"argv":["rm","-rf","/"]}`), judge.Deny, "catastrophic"},
				"critical start": {riskiest(execBy(alice, `{"argv":["ls"]}`)), judge.HITL, "critical"},
				"critical call":  {riskiest(call("fs.read", `{}`)), judge.HITL, "critical"},
				"a sure result":  {result("done", 0.95), judge.Approve, ""},
			} {
				v := f.Evaluate(t.Context(), "t_acme", c.ask)
				if v.Decision != c.decision || c.reason != "" && c.reason != "critical" && v.ReasonCode != c.reason {
					t.Errorf("%s: %s %s", what, v.Decision, v.ReasonCode)
				}
				if c.reason == "critical" && v.Risk != judge.Critical {
					t.Errorf("%s: risk %s", what, v.Risk)
				}
			}
		})
	}
}

func TestAPolicysOwnTopicsComeOnTop(t *testing.T) {
	f := setup(t)
	f.activated(rulesOf(yielding+"topics: [{name: house, words: [project zebra]}]\n", yieldingCases))
	for text, decision := range map[string]judge.Decision{"of Project Zebra": judge.HITL, "a password": judge.HITL, "of zebras": judge.Approve} {
		if v := f.Evaluate(t.Context(), "t_acme", result(text, 0.99)); v.Decision != decision {
			t.Errorf("%s: %s", text, v.Decision)
		}
	}
}

func TestTopicsAreFoundHoweverTheyAreWritten(t *testing.T) {
	f := setup(t)
	for _, text := range []string{
		"PASSWORD", "ｐａｓｓｗｏｒｄ", "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝", "раssword", "pаsswоrd", "pass\u200bword", "pass\u00adword", "p\u0301assword", "p a s s w o r d",
		"the p.a.s.s.w.o.r.d is", "P-A-S-S-W-O-R-D", "ⓟⓐⓢⓢⓦⓞⓡⓓ", "passw\u2060ord", "a p a s s w o r d", "das Passwort", "die Überweisung", "die ÜBERWEISUNG", "mot de\u00a0passe",
		"contrasena", "la contraseña", "d e l e t e  a l l",
	} {
		if v := f.Evaluate(t.Context(), "t_acme", result(text, 0.99)); v.ReasonCode != "sensitive.topic" {
			t.Errorf("%q: %s", text, v.ReasonCode)
		}
	}
	for _, text := range []string{"", "pass the word", "a b c d e", "i i i", "Straße", "καλημέρα κόσμε", "привет, мир", "x y z", "compass wording"} {
		if v := f.Evaluate(t.Context(), "t_acme", result(text, 0.99)); v.Decision != judge.Approve {
			t.Errorf("%q: %s", text, v.ReasonCode)
		}
	}
}

func TestAFloorIsSwitchedOffByTwoAndOnByOne(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	off := judge.PolicyTerms{FloorsOff: []string{"result.sensitive"}}
	ask := result("the password is hunter2", 0.99)
	sensitive := func() bool { return f.Evaluate(ctx, "t_acme", ask).Decision == judge.HITL }
	version := f.Evaluate(ctx, "t_acme", ask).PolicyVersion
	for _, name := range []string{"alice", "chief"} {
		by := alice
		by.Name, by.Person = name, "uid:1"
		if got, err := f.SetTerms(ctx, by, off); err != nil || len(got.FloorsOff) > 0 || got.Loosened == nil || !sensitive() {
			t.Fatalf("one person: %+v, %v", got, err)
		}
	}
	late := bob
	late.Name, late.Person, late.Known = "new", "SHA256:n", time.Now().Add(time.Hour)
	if _, err := f.SetTerms(ctx, late, off); code(err) != core.Denied || !sensitive() {
		t.Errorf("a person made for it: %v", err)
	}
	other := judge.PolicyTerms{FloorsOff: []string{"result.band"}}
	if got, err := f.SetTerms(ctx, bob, other); err != nil || len(got.FloorsOff) > 0 {
		t.Errorf("two who want different things: %+v, %v", got, err)
	}
	if _, err := f.SetTerms(ctx, alice, off); err != nil || !sensitive() {
		t.Errorf("%v", err)
	}
	if got, err := f.SetTerms(ctx, bob, off); err != nil || !slices.Equal(got.FloorsOff, off.FloorsOff) || got.Loosened != nil || sensitive() {
		t.Fatalf("two persons: %+v, %v", got, err)
	}
	if now := f.Evaluate(ctx, "t_acme", ask).PolicyVersion; now == version {
		t.Error("the version is the same without the floor")
	}
	f.activated(rulesOf(yielding, yieldingCases))
	if sensitive() {
		t.Error("another policy switched the floor on")
	}
	if _, err := f.SetTerms(ctx, alice, judge.PolicyTerms{}); err != nil || !sensitive() {
		t.Errorf("one person could not switch it on: %v", err)
	}
	if _, err := f.SetTerms(ctx, alice, judge.PolicyTerms{FloorsOff: []string{"catastrophe"}}); code(err) != core.InvalidInput || !strings.Contains(err.Error(), "result.band") {
		t.Errorf("a deny rule: %v", err)
	}
	f.healthy()
}

// asking is a policy that asks about every call of an agent, at a risk.
func asking(risk judge.Risk, more ...string) judge.Proposal {
	rule := fmt.Sprintf("  - {id: all, gates: [tool.call], when: \"true\", decision: hitl, reason_code: ask, risk: %s}\n", risk)
	return rulesOf(policy(append(more, rule)...), `{"name":"ask","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"hitl"}}`)
}

const etcFloor = `  - {id: etc, gates: [tool.call], when: 'has(action.args.path) && action.args.path.startsWith("/etc")', decision: hitl, floor: true, reason_code: system, risk: medium}` + "\n"

// A floor asks a person each time, whatever was approved always.
func TestNoAlwaysLowersAPolicysOwnFloor(t *testing.T) {
	f := setup(t)
	f.activated(asking(judge.Medium, etcFloor))
	below, held := call("fs.write", `{"path":"/tmp/a"}`), call("fs.write", `{"path":"/etc/a"}`)
	if _, err := f.approveAlways(held, always); code(err) != core.InvalidInput || !strings.Contains(err.Error(), "floor etc") {
		t.Errorf("what a floor holds was approved always: %v", err)
	}
	expect.Of(f.approveAlways(below, judge.Always{For: "anyone", Any: []string{"*"}, Expires: time.Hour, MaxUses: 9}))(t)
	if d, _ := f.commit(below); d.ReasonCode != "always.rule" {
		t.Errorf("below the floor: %s", d.ReasonCode)
	}
	if d, _ := f.commit(held); d.Decision != judge.HITL || d.RuleID != "etc" || f.rule().Uses != 1 {
		t.Errorf("%+v, %d uses", d, f.rule().Uses)
	}
	if e, err := f.Explain(t.Context(), acme, "", core.Raw(`{"action":{"kind":"tool","server":"exec","tool":"fs.write","args":{"path":"/etc/a"}},"agent":{"name":"robot"}}`)); err != nil || e.Always || e.RuleID != "etc" {
		t.Errorf("%+v, %v", e, err)
	}
	f.healthy()
}

func TestOnlyWhomItIsForAnswers(t *testing.T) {
	const asking = `
schema: 1
name: asking
rules:
  - {id: all, gates: [task.start, tool.call], when: "true", decision: hitl, reason_code: ask, risk: medium, approvers: [on-call]}
`
	f := setup(t, withKeys(t, new(time.Time)))
	ctx := t.Context()
	f.activated(rulesOf(asking, `{"name":"ask","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"hitl"}}`))
	yes := judge.Answer{Approve: true, Reason: "fine"}
	barred := func(by core.Caller, id string) {
		t.Helper()
		_, answered := f.Answer(ctx, by, id, yes)
		_, denied := f.Answer(ctx, by, id, judge.Answer{Reason: "no"})
		_, deferred := f.Defer(ctx, by, id, time.Minute)
		_, escalated := f.Escalate(ctx, by, id, by.Name, "mine")
		for what, err := range map[string]error{"answer": answered, "deny": denied, "defer": deferred, "escalate": escalated} {
			expect.Is(t, code(err), core.Denied, by.Name, "could", what, err)
		}
	}
	carol := named(bob, "carol")
	a := f.opened(execBy(robot, rmBuild))
	expect.Same(t, a.Approvers, []string{"on-call"}, a)
	barred(bob, a.ApprovalID)
	if got, err := f.Answer(ctx, carol, a.ApprovalID, yes); err != nil || got.Status != judge.Approved {
		t.Errorf("%+v, %v", got, err)
	}
	a = f.opened(execBy(robot, rmBuild))
	if _, err := f.Escalate(ctx, carol, a.ApprovalID, "mallory", ""); code(err) != core.InvalidInput {
		t.Errorf("to nobody: %v", err)
	}
	expect.Of(f.Escalate(ctx, carol, a.ApprovalID, "bob", "his call"))(t)
	barred(carol, a.ApprovalID)
	if got, err := f.Answer(ctx, bob, a.ApprovalID, judge.Answer{Reason: "no"}); err != nil || got.Status != judge.Refused {
		t.Errorf("%+v, %v", got, err)
	}
	f.healthy()
}
