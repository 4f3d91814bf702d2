package judge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// routed is a policy with one rule that asks, with more fields.
func routed(more string) string {
	return "schema: 1\nname: routed\nrules:\n  - {id: all, gates: [task.start, tool.call], when: \"true\", decision: hitl, reason_code: ask, risk: medium, " + more + "}\n"
}

const routedCase = `{"name":"ask","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"hitl"}}`

func TestAsManyPersonsApproveAsARuleAsksFor(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	f.activated(rulesOf(routed("quorum: 3"), routedCase))
	carol, dave := named(bob, "carol"), named(bob, "dave")
	yes := judge.Answer{Approve: true}
	ask := execBy(alice, rmBuild)
	a := f.opened(ask)
	_, err := f.Answer(ctx, alice, a.ApprovalID, yes)
	expect.Is(t, code(err), core.Denied, "who asked")
	for n, who := range []core.Caller{bob, carol} {
		got, err := f.Answer(ctx, who, a.ApprovalID, yes)
		if err != nil || got.Status != judge.Open || len(got.Consents) != n+1 {
			t.Fatalf("%s: %+v, %v", who.Name, got, err)
		}
		_, err = f.Answer(ctx, who, a.ApprovalID, yes)
		expect.Is(t, code(err), core.Denied, who.Name, "twice")
	}
	if _, err := f.Answer(ctx, dave, a.ApprovalID, judge.Answer{Approve: true, Always: &judge.Always{For: "anyone", Expires: time.Hour, MaxUses: 1}}); code(err) != core.InvalidInput {
		t.Errorf("a rule in place of three persons: %v", err)
	}
	got, err := f.Answer(ctx, dave, a.ApprovalID, yes)
	if err != nil || got.Status != judge.Approved || !slices.Equal(got.Consenting(), []string{"bob", "carol"}) || !f.start(a.ApprovalID, ask) {
		t.Fatalf("the third: %+v, %v", got, err)
	}
	a = f.opened(ask)
	expect.Of(f.Answer(ctx, bob, a.ApprovalID, yes))(t)
	if got, err := f.Answer(ctx, carol, a.ApprovalID, judge.Answer{Reason: "no"}); err != nil || got.Status != judge.Refused {
		t.Errorf("one denial denies: %+v, %v", got, err)
	}
	f.healthy()
}

func TestARuleSaysHowLongThereIsAndWhoIsAskedThen(t *testing.T) {
	f := setup(t, withKeys(t, new(time.Time)))
	f.activated(rulesOf(routed("approvers: [bob], deadline: 2h, escalate: [30m, on-call]"), routedCase))
	a := f.opened(execBy(robot, rmBuild))
	if left := a.DeadlineAt.Sub(a.CreatedAt); left != 2*time.Hour || a.EscalateAt.Sub(a.CreatedAt) != 30*time.Minute || a.EscalateTo != "on-call" {
		t.Fatalf("%+v", a)
	}
	got, err := f.Defer(t.Context(), bob, a.ApprovalID, time.Hour)
	if err != nil || got.DeadlineAt.Sub(a.CreatedAt) != 3*time.Hour || got.EscalateAt.Sub(a.CreatedAt) != 90*time.Minute {
		t.Errorf("put off: %+v, %v", got, err)
	}
	f.healthy()
}

// 1 May 2026 is a Friday; it is 14:00 UTC.
func TestOutsideTheirHoursOthersAnswer(t *testing.T) {
	for _, c := range []struct{ window, want string }{
		{"{days: [mon, tue, wed, thu, fri], hours: \"09:00-17:00\", else: on-call}", "bob"},
		{"{days: [mon], hours: \"09:00-17:00\", else: on-call}", "on-call"},
		{"{hours: \"09:00-14:00\", else: on-call}", "on-call"},
		{"{hours: \"14:00-15:00\", else: on-call}", "bob"},
		{"{hours: \"22:00-14:30\", days: [thu], else: on-call}", "bob"},
		{"{hours: \"22:00-14:30\", days: [fri], else: on-call}", "on-call"},
		{"{hours: \"09:00-17:00\", zone: Asia/Tokyo, else: on-call}", "on-call"},
	} {
		f := setup(t, withKeys(t, new(time.Time)))
		f.activated(rulesOf(routed("approvers: [bob], window: "+c.window), routedCase))
		expect.Same(t, f.opened(execBy(robot, rmBuild)).Approvers, []string{c.want}, c.window, "for")
	}
}

func TestOneStandsInForWhoIsAway(t *testing.T) {
	f := setup(t, withKeys(t, new(time.Time)))
	ctx := t.Context()
	f.activated(rulesOf(routed("approvers: [on-call]"), routedCase))
	dave := named(bob, "dave")
	yes := judge.Answer{Approve: true, Reason: "fine"}
	a := f.opened(execBy(robot, rmBuild))
	if got, err := f.Answer(ctx, dave, a.ApprovalID, yes); err != nil || got.AnsweredBy != "dave" || got.AnsweredFor != "carol" {
		t.Fatalf("%+v, %v", got, err)
	}
	grave := execBy(robot, rmBuild)
	grave.Risk = judge.Critical
	_, err := f.Answer(ctx, dave, f.opened(grave).ApprovalID, yes)
	expect.Is(t, code(err), core.Denied, "at critical risk")
	f.clock.pass(time.Hour)
	_, err = f.Answer(ctx, dave, f.opened(execBy(robot, rmBuild)).ApprovalID, yes)
	expect.Is(t, code(err), core.Denied, "after that")
	f.healthy()
}

// Who may answer the one may not turn it into the other and answer that.
func TestAnEditIsForWhomItsOwnRuleNames(t *testing.T) {
	f := setup(t, withKeys(t, new(time.Time)))
	f.activated(rulesOf(`
schema: 1
name: two
rules:
  - {id: prod, gates: [task.start], when: 'action.args.argv.exists(a, a == "prod")', decision: hitl, reason_code: prod, risk: medium, groups: [on-call], quorum: 2}
  - {id: all, gates: [task.start, tool.call], when: "true", decision: hitl, reason_code: ask, risk: medium}
`, routedCase))
	a := f.opened(execBy(robot, `{"argv":["deploy","staging"]}`))
	edit := judge.Answer{Approve: true, Edit: core.Raw(`{"argv":["deploy","prod"]}`)}
	if _, err := f.Answer(t.Context(), bob, a.ApprovalID, edit); code(err) != core.Denied {
		t.Fatalf("bob: %v", err)
	}
	got, err := f.Answer(t.Context(), named(bob, "carol"), a.ApprovalID, edit)
	if err != nil || got.Status != judge.Open || got.Quorum != 2 || !slices.Equal(got.Approvers, []string{"on-call"}) || got.RuleID != "prod" || got.ReasonCode != "prod" {
		t.Fatalf("carol: %+v, %v", got, err)
	}
	f.healthy()
}

func TestABadRouteNamesItsField(t *testing.T) {
	f := setup(t)
	for more, want := range map[string]string{
		"quorum: 6":                          "rules.all.quorum",
		"approvers: [bob, carol], quorum: 3": "rules.all.quorum",
		"deadline: soon":                     "rules.all.deadline",
		"deadline: 30h":                      "rules.all.deadline",
		"escalate: [1h]":                     "rules.all.escalate",
		"escalate: [never, bob]":             "rules.all.escalate",
		"approvers: [\" x\"]":                "rules.all.approvers",
		"window: {hours: \"9-17\", else: x}": "rules.all.window.hours",
		"window: {hours: \"09:00-17:00\"}":   "rules.all.window.else",
		"window: {hours: \"09:00-17:00\", else: x, zone: Mars/X}":   "rules.all.window.zone",
		"window: {hours: \"09:00-17:00\", else: x, days: [monday]}": "rules.all.window.days",
	} {
		_, err := f.Propose(t.Context(), alice, rulesOf(routed(more), routedCase))
		if code(err) != core.InvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", more, err)
		}
	}
	deny := strings.Replace(routed("quorum: 2"), "hitl", "deny", 1)
	_, err := f.Propose(t.Context(), alice, rulesOf(deny, routedCase))
	expect.Is(t, code(err), core.InvalidInput, "in a deny rule")
}
