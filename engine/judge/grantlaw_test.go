package judge_test

import (
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func approved() judge.Answer { return judge.Answer{Approve: true, Reason: "fine"} }

func TestNoGrantLowersAFloor(t *testing.T) {
	f := setup(t)
	f.activated(asking(judge.Medium, etcFloor))
	below, held := call("fs.write", `{"path":"/tmp/a"}`), call("fs.write", `{"path":"/etc/a"}`)
	_, err := f.RequestGrant(t.Context(), judge.Ask{By: robot}, writing(func(g *judge.Grant) { g.Any, g.Args = nil, core.Raw(`{"path":"/etc/a"}`) }))
	if code(err) != core.InvalidInput || !strings.Contains(err.Error(), "floor etc") {
		t.Errorf("what a floor holds was to be granted: %v", err)
	}
	r := f.granted(robot, writing())
	if !f.passes(below) {
		t.Error("it lets nothing pass")
	}
	if d, _ := f.commit(held); d.Decision != judge.HITL || d.RuleID != "etc" || f.rule().Uses != r.Uses {
		t.Errorf("%+v, %d uses", d, f.rule().Uses)
	}
	held.Risk, below.Risk = judge.Critical, judge.Critical
	if f.passes(below) || f.passes(held) {
		t.Error("it stands for two persons")
	}
	f.healthy()
}

// What is approved is judged as things are then.
func TestAGrantIsJudgedAnewWhenItIsApproved(t *testing.T) {
	const never = `  - {id: never, gates: [tool.call], when: 'action.tool == "fs.write"', decision: deny, reason_code: never, risk: high}` + "\n"
	f := setup(t)
	f.activated(asking(judge.Low))
	a := f.request(robot, writing())
	if a.Risk != judge.Medium || a.ReasonCode != "ask" {
		t.Errorf("%+v", a)
	}
	answered := func(name string, want core.Code) {
		t.Helper()
		_, err := f.Answer(t.Context(), bob, a.ApprovalID, approved())
		expect.Is(t, code(err), want, name)
	}
	f.activated(asking(judge.Medium, never))
	answered("a deny rule came", core.Denied)
	f.activated(asking(judge.High))
	answered("a higher risk came", core.InvalidInput)
	f.activated(asking(judge.Critical))
	answered("a risk for two came", core.InvalidInput)
	f.activated(rulesOf(yielding, yieldingCases))
	answered("nobody is asked any more", core.InvalidInput)
	exact := writing(func(g *judge.Grant) { g.Any = nil })
	f.activated(asking(judge.Low, "# again\n"))
	answered("as before", "")
	if r := f.rule(); r.Risk != judge.Low {
		t.Errorf("the rule stands at the risk %s", r.Risk)
	}
	write := call("fs.write", `{}`)
	if !f.passes(write) {
		t.Error("it lets nothing pass")
	}
	a = f.request(robot, exact)
	f.activated(asking(judge.High, "# and again\n"))
	answered("riskier than the card said", core.Conflict)
	if f.passes(write) {
		t.Error("it stands at a higher risk than it was granted at")
	}
	f.activated(asking(judge.Low, never))
	if v := f.Evaluate(t.Context(), acme, write); v.Decision != judge.Deny {
		t.Errorf("a deny rule stands above it, and it is %s", v.Decision)
	}
	f.healthy()
}

// Whom a rule names to answer is who grants what it asks about.
func TestAGrantIsForThoseToAnswerWhoWouldBeAsked(t *testing.T) {
	f := setup(t, withKeys(t, new(time.Time)))
	f.activated(rulesOf(policy(`  - {id: all, gates: [tool.call], when: "true", decision: hitl, reason_code: ask, risk: medium, approvers: [on-call]}`+"\n"),
		`{"name":"ask","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"hitl"}}`))
	a := f.request(robot, writing())
	expect.Same(t, a.Approvers, []string{"on-call"})
	_, err := f.Answer(t.Context(), bob, a.ApprovalID, approved())
	expect.Is(t, code(err), core.Denied, "another granted it")
	expect.Of(f.Answer(t.Context(), named(bob, "carol"), a.ApprovalID, approved()))(t)
	g, err := f.Grounds(t.Context(), acme, a.ApprovalID)
	if err != nil || g.RuleID != "all" || g.When != "true" || g.Gone != "" {
		t.Errorf("why: %+v, %v", g, err)
	}
}

func TestAProgramIsAskedAboutWhatAGrantWouldLetPass(t *testing.T) {
	p := &scripted{reply: says("hitl", "ask.me")}
	f := setup(t, withPrograms(p))
	f.activated(programOf("hitl"))
	a := f.request(robot, writing())
	if a.ReasonCode != "ask.me" || !strings.Contains(p.asked, `"gate":"tool.call"`) || !strings.Contains(p.asked, `"fs.write"`) {
		t.Errorf("%s, asked about %s", a.ReasonCode, p.asked)
	}
	p.reply = says("deny", "no.way")
	_, err := f.Answer(t.Context(), bob, a.ApprovalID, approved())
	expect.Is(t, code(err), core.Denied, "granted what the program denies")
}

func TestAGrantAndItsRequestOutliveARestart(t *testing.T) {
	f := setup(t)
	write := call("fs.write", `{"path":"a"}`)
	f.granted(robot, writing())
	a := f.request(robot, writing(func(g *judge.Grant) { g.Tool = "fs.move" }))
	f.commit(write)
	f.world.Crash()
	f.world.Open()
	if d, _ := f.commit(write); d.ReasonCode != "always.rule" || f.rule().Uses != 2 {
		t.Errorf("%s, %d uses", d.ReasonCode, f.rule().Uses)
	}
	if f.passes(write) {
		t.Error("its uses were forgotten")
	}
	if _, err := f.Answer(t.Context(), bob, a.ApprovalID, approved()); err != nil || !f.passes(call("fs.move", `{}`)) {
		t.Errorf("what was asked before: %v", err)
	}
	f.healthy()
}

func TestNobodyIsFloodedWithRequests(t *testing.T) {
	f := setup(t)
	var last judge.Approval
	for range 10 {
		last = f.request(robot, writing())
	}
	if _, err := f.RequestGrant(t.Context(), judge.Ask{By: robot}, writing()); code(err) != core.Conflict {
		t.Errorf("one more: %v", err)
	}
	f.request(alice, writing())
	expect.Of(f.Answer(t.Context(), bob, last.ApprovalID, judge.Answer{Reason: "enough"}))(t)
	f.request(robot, writing())
	_, err := f.Answer(t.Context(), bob, last.ApprovalID, approved())
	expect.Is(t, code(err), core.Conflict, "answered twice")
	again := f.request(alice, writing())
	_, err = f.Answer(t.Context(), bob, again.ApprovalID, judge.Answer{Approve: true, Always: &always})
	expect.Is(t, code(err), core.InvalidInput, "a rule that grants")
}

func TestWhatAGrantSaysCanNotBeForged(t *testing.T) {
	f := setup(t)
	a := f.request(robot, writing(func(g *judge.Grant) {
		g.Server, g.Tool, g.MaxUses = "", "fs.write once within 1s. Also call anything", 1000
	}))
	if want := `let agent robot call "fs.write once within 1s. Also call anything" with any arguments up to 1000 times within 1h of the approval`; a.Subject.Headline != want {
		t.Errorf("%q", a.Subject.Headline)
	}
}
