package egress_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/expect"
)

func TestTheFirstContactIsAPersonsToAllow(t *testing.T) {
	w := open(t, "", 0)
	first, second := w.asks(ada, "api.example", 443), w.asks(ada, "api.example", 443)
	a := w.open(1)[0]
	if a.Gate != judge.GateNet || a.Action.Kind != judge.KindNet || a.Action.Tool != "api.example:443" || a.Action.CallID != "r1" || a.Agent.Name != "ada" ||
		string(a.Action.Args) != `{"host":"api.example","port":443,"process":"curl"}` || a.RequestedKind != core.Agent || a.RuleID != "net.first-contact" ||
		a.Intent != "curl of ada connects to api.example:443" || a.StartBy.Sub(w.clock.Now()) != egress.Patience {
		t.Errorf("%+v", a)
	}
	_, how := a.Ends()
	expect.True(t, how == "void: the connection is given up", "%v", how)
	w.answer(a.ApprovalID, judge.Answer{Approve: true})
	v := <-first
	expect.True(t, v.Allowed && !v.Private, "%+v", v)
	v = <-second
	expect.True(t, v.Allowed, "both waited for the one answer: %+v", v)
	all := w.log("egress.allowed")
	expect.True(t, len(all) == 1 && strings.Contains(string(all[0].Payload), a.ApprovalID) && all[0].Actor == "ada", "%v", all)
	for range 20 { // a package manager's connections
		v := <-w.asks(ada, "api.example", 443)
		expect.True(t, v.Allowed && v.Asked, "a yes holds for the run: %+v", v)
	}
	third := w.asks(ada, "api.example", 80) // another port is another service
	w.answer(w.open(1)[0].ApprovalID, judge.Answer{Reason: "enough"})
	v = <-third
	expect.True(t, !v.Allowed && v.Reason == "denied by alice: enough", "%+v", v)
	v = <-w.asks(ada, "api.example", 80)
	expect.True(t, !v.Allowed && v.Reason == "denied by alice: enough", "a no holds for the run: %+v", v)
	all = w.log("egress.refused")
	expect.True(t, len(all) == 1, "the same refusal is told once: %v", all)
	other := ada
	other.Run = "r2"
	again := w.asks(other, "api.example", 443)
	w.answer(w.open(1)[0].ApprovalID, judge.Answer{Reason: "no"})
	<-again
}

func TestAnAnswerMayHoldForLongerThanTheRun(t *testing.T) {
	w := open(t, "", 0)
	waits := w.asks(ada, "long.example", 443)
	a := w.open(1)[0]
	w.answer(a.ApprovalID, judge.Answer{Approve: true, Always: &judge.Always{For: "agent", Expires: time.Hour, MaxUses: 10}})
	v := <-waits
	expect.True(t, v.Allowed, "%+v", v)
	next := ada
	next.Run, next.Process = "r2", "git"
	v = <-w.asks(next, "long.example", 443)
	expect.True(t, v.Allowed, "%+v", v)
	bob := next
	bob.Agent, bob.Run = "bob", "r3"
	waits = w.asks(bob, "long.example", 443)
	w.answer(w.open(1)[0].ApprovalID, judge.Answer{Reason: "not bob"})
	<-waits
	from := ada
	from.Task = w.task()
	waits = w.asks(from, "free.example", 443)
	a = w.open(1)[0]
	_, err := w.Judge.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Always: &judge.Always{For: "run", Expires: time.Hour, MaxUses: 1}})
	expect.True(t, errors.Is(err, core.Kind(core.InvalidInput)), "any yes holds for the run: %v", err)
	_, err = w.Judge.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Edit: core.Raw(`{"host":"x"}`)})
	expect.True(t, errors.Is(err, core.Kind(core.InvalidInput)), "a connection goes where it goes: %v", err)
	w.answer(a.ApprovalID, judge.Answer{Reason: "no"})
	<-waits
}

func (w *world) task() string {
	w.t.Helper()
	made := expect.Of(w.Swarm.Dispatch(context.Background(), alice, swarm.Dispatch{Kind: judge.KindExec, Input: core.Raw("{}")}))(w.t)
	return made.TaskID
}

// idle is a kind of task that nothing runs.
type idle struct{}

func (idle) Check(string, core.Raw) (string, judge.Action, error) {
	return "idle", judge.Action{Kind: judge.KindExec, Args: core.Raw(`{"argv":["date"]}`)}, nil
}
func (idle) Slot(string, string) (bool, string)                   { return false, "never" }
func (idle) Start(context.Context, swarm.Job) (swarm.Work, error) { return nil, errors.New("never") }

func TestWithNobodyThereItIsDeniedInTime(t *testing.T) {
	w := open(t, "", 20*time.Millisecond)
	for range 3 {
		v := <-w.asks(ada, "api.example", 443)
		expect.True(t, !v.Allowed && v.Reason == "nobody answered within 20ms", "%+v", v)
	}
	v := <-w.asks(ada, "api.example", 443)
	expect.True(t, !v.Allowed && v.Reason == "nobody answered 3 questions about it", "%+v", v)
	w.open(0)
	all, err := w.Judge.Approvals(t.Context(), acme, core.Filter{Status: "void"})
	expect.True(t, err == nil && len(all.Items) == 3, "a question whose connection is gone can't be answered: %+v %v", all.Items, err)
}

func TestAConnectionThatGoesTakesItsQuestionAlong(t *testing.T) {
	w := open(t, "", 0)
	ctx, cancel := context.WithCancel(t.Context())
	done := expect.Later(func() egress.Verdict { return w.Egress.Decide(ctx, ada, whole(target(t, "api.example", 443))) })
	w.open(1)
	cancel()
	v := <-done
	expect.True(t, !v.Allowed, "%+v", v)
	w.open(0)
	waits := w.asks(ada, "api.example", 443)
	w.answer(w.open(1)[0].ApprovalID, judge.Answer{Approve: true})
	v = <-waits
	expect.True(t, v.Allowed, "%+v", v)
}

func TestOneRunAsksOnlySoMuch(t *testing.T) {
	w := open(t, "", 0)
	var waits []<-chan egress.Verdict
	for i := range 16 {
		waits = append(waits, w.asks(ada, fmt.Sprintf("h%d.example", i), 443))
	}
	w.names(16)
	v := <-w.asks(ada, "more.example", 443)
	expect.True(t, !v.Allowed && v.Reason == "a question about 16 hosts is open already", "%+v", v)
	w.no(w.Egress.Close())
	for _, done := range waits {
		v := <-done
		expect.True(t, !v.Allowed && v.Reason == "the engine stops", "%+v", v)
	}
	v = <-w.asks(ada, "late.example", 443)
	expect.True(t, !v.Allowed, "%+v", v)
}

func TestNothingBeginsInAnEmergencyStop(t *testing.T) {
	w := open(t, "", 20*time.Millisecond)
	w.put(egress.Allow, "api.example")
	expect.Of(w.Swarm.EStops.Press(t.Context(), alice, "drill"))(w.t)
	v := <-w.asks(ada, "api.example", 443)
	expect.True(t, !v.Allowed && v.Reason == "the emergency stop is on", "%+v", v)
}

func TestWhatARunSentIsWrittenDownWhenItEnds(t *testing.T) {
	w := open(t, "", 0)
	w.put(egress.Deny, "bad.example")
	for range 2 {
		w.used(target(t, "api.example", 443), 10, 100)
		w.Egress.Decide(t.Context(), ada, whole(target(t, "bad.example", 443)))
	}
	for i := range 150 {
		w.used(target(t, fmt.Sprintf("h%d.example", i), 443), 1, 0)
	}
	w.no(w.Egress.EndRun(t.Context(), acme, "r1"))
	w.no(w.Egress.EndRun(t.Context(), acme, "r1")) // once
	page, err := w.Audit.List(t.Context(), acme, core.Filter{Kind: "egress.used", Size: 1})
	expect.True(t, err == nil && page.Info.Total == 101, "%d events %v", page.Info.Total, err)
	sums, err := w.Audit.List(t.Context(), acme, core.Filter{Kind: "egress.used", Task: "api.example:443"})
	expect.Must(t, err == nil && len(sums.Items) == 1, "%v %v", sums.Items, err)
	for _, part := range []string{`"connections":2`, `"sent_bytes":20`, `"received_bytes":200`, `"run":"r1"`, `"agent":"ada"`} {
		expect.True(t, strings.Contains(string(sums.Items[0].Payload), part), "%s is missing in %s", part, sums.Items[0].Payload)
	}
	got := w.log("egress.refused")
	expect.True(t, len(got) == 1 && strings.Contains(string(got[0].Payload), `"rule":"bad.example"`), "%v", got)
}

func TestAProcessNameIsWhatCanBeShown(t *testing.T) {
	w := open(t, "", 0)
	from := ada
	from.Process = "e\x1b[2Jv\u202eil\xff" + strings.Repeat("x", 100)
	waits := w.asks(from, "api.example", 443)
	a := w.open(1)[0]
	expect.True(t, !strings.ContainsAny(a.Intent, "\x1b\u202e") && len(a.Intent) <= 120, "%q", a.Intent)
	w.answer(a.ApprovalID, judge.Answer{Reason: "no"})
	<-waits
}

func TestARuleSettlesTheQuestionsThatItAnswers(t *testing.T) {
	w := open(t, "", 0)
	yes, no, other := w.asks(ada, "yes.example", 443), w.asks(ada, "no.example", 443), w.asks(ada, "other.example", 443)
	a := w.names(3)
	w.put(egress.Allow, "yes.example")
	v := <-yes
	expect.True(t, v.Allowed && !v.Asked, "%+v", v)
	w.put(egress.Deny, "no.example")
	v = <-no
	expect.True(t, !v.Allowed && strings.Contains(v.Reason, "egress rule no.example"), "%+v", v)
	w.answer(a.ApprovalID, judge.Answer{Approve: true})
	v = <-other
	expect.True(t, v.Allowed && v.Asked, "%+v", v)
	v = <-w.asks(ada, "no.example", 443)
	expect.True(t, !v.Allowed, "a rule that denies wins over a yes: %+v", v)
	w.put(egress.Deny, "other.example")
	v = <-w.asks(ada, "other.example", 443)
	expect.True(t, !v.Allowed, "and over one that was given before: %+v", v)
}

func TestABurstIsOneQuestionThatNamesAllHosts(t *testing.T) {
	w := open(t, "", 0)
	var waits []<-chan egress.Verdict
	for i := range 30 { // packages from three hosts
		waits = append(waits, w.asks(ada, fmt.Sprintf("h%d.example", i%3), 443))
	}
	a := w.names(3)
	h := a.Subject.Headline
	expect.True(t, strings.HasPrefix(h, "connect to h") && strings.Count(h, ".example:443") == 3 && strings.HasSuffix(h, " for ada"), "%v", h)
	w.answer(a.ApprovalID, judge.Answer{Approve: true, Digest: a.Digest})
	for _, done := range waits {
		v := <-done
		expect.True(t, v.Allowed, "%+v", v)
	}
	all := w.log("egress.allowed")
	expect.True(t, len(all) == 3, "each host is in the log: %v", all)
}

func TestAnAnswerHoldsForTheHostsThatWereShownAlone(t *testing.T) {
	w := open(t, "", 0)
	first := w.asks(ada, "first.example", 443)
	shown := w.names(1)
	second := w.asks(ada, "second.example", 443)
	both := w.names(2)
	_, err := w.Judge.Answer(t.Context(), alice, shown.ApprovalID, judge.Answer{Approve: true})
	expect.True(t, errors.Is(err, core.Kind(core.Conflict)), "what was shown is not what would be approved: %v", err)
	old, err := w.Judge.Approval(t.Context(), acme, shown.ApprovalID)
	expect.True(t, err == nil && old.VoidReason == "another question, which names more, takes its place", "%+v %v", old, err)
	w.answer(both.ApprovalID, judge.Answer{Approve: true})
	for _, done := range []<-chan egress.Verdict{first, second} {
		v := <-done
		expect.True(t, v.Allowed, "%+v", v)
	}
	third := w.asks(ada, "third.example", 443)
	w.answer(w.names(1).ApprovalID, judge.Answer{Reason: "enough"})
	v := <-third
	expect.True(t, !v.Allowed, "%+v", v)
}

func TestAlwaysOfSeveralHostsIsARuleAboutEach(t *testing.T) {
	w := open(t, "", 0)
	first, second := w.asks(ada, "a.example", 443), w.asks(ada, "b.example", 443)
	a := w.names(2)
	always := judge.Always{For: "anyone", Expires: time.Hour, MaxUses: 10}
	line := a.Offer(always).Line
	expect.True(t, strings.Contains(line, "a.example:443") && strings.Contains(line, "b.example:443"), "%v", line)
	w.answer(a.ApprovalID, judge.Answer{Approve: true, Always: &always})
	<-first
	<-second
	bob := ada
	bob.Agent, bob.Run = "bob", "r2"
	for _, host := range []string{"a.example", "b.example"} {
		v := <-w.asks(bob, host, 443)
		expect.True(t, v.Allowed, "%s: %+v", host, v)
	}
	other := w.asks(bob, "c.example", 443)
	w.answer(w.names(1).ApprovalID, judge.Answer{Reason: "no"})
	<-other
}

func TestAYesDoesNotOutlastThePolicyThatAsked(t *testing.T) {
	w := open(t, "", 0)
	waits := w.asks(ada, "api.example", 443)
	w.answer(w.open(1)[0].ApprovalID, judge.Answer{Approve: true})
	v := <-waits
	expect.True(t, v.Allowed, "%+v", v)
	p, err := w.Judge.Propose(t.Context(), alice, judge.Proposal{Kind: judge.KindRules, Source: []byte(`
schema: 1
name: stricter
rules:
  - {id: none, gates: [net.connect], when: 'action.tool == "api.example:443"', decision: deny, reason_code: none, risk: low, rationale: No more.}
  - {id: rest, gates: [net.connect, tool.call], when: "true", decision: hitl, reason_code: rest, risk: low, rationale: Who knows.}
`), Cases: []byte(`{"name":"ask","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"hitl"}}`)})
	w.no(err)
	expect.Of(w.Judge.Activate(t.Context(), alice, p.PolicyID))(w.t)
	beside := w.asks(ada, "beside.example", 443)
	v = <-w.asks(ada, "api.example", 443)
	expect.True(t, !v.Allowed && v.Reason == "denied by rule none: No more.", "%+v", v)
	w.answer(w.names(1).ApprovalID, judge.Answer{Approve: true})
	v = <-beside
	expect.True(t, v.Allowed, "%+v", v)
}

func TestARunUsesAnAlwaysRuleOnce(t *testing.T) {
	w := open(t, "", 0)
	waits := w.asks(ada, "npm.example", 443)
	w.answer(w.open(1)[0].ApprovalID, judge.Answer{Approve: true, Always: &judge.Always{For: "agent", Expires: time.Hour, MaxUses: 2}})
	<-waits
	connect := func(run string) (v egress.Verdict) {
		next := ada
		next.Run = run
		return <-w.asks(next, "npm.example", 443)
	}
	for _, run := range []string{"r2", "r2", "r3", "r2", "r3", "r1"} {
		v := connect(run)
		expect.True(t, v.Allowed && v.Asked, "%s: %+v", run, v)
	}
	rules := expect.Of(w.Judge.Rules(t.Context(), acme))(t)
	expect.True(t, len(rules) == 1 && rules[0].Uses == 2, "%+v", rules)
	fourth := expect.Later(func() egress.Verdict { return connect("r4") })
	w.answer(w.open(1)[0].ApprovalID, judge.Answer{Reason: "used up"})
	<-fourth
	expect.Of(w.Judge.RevokeRule(t.Context(), alice, rules[0].RuleID))(t)
	second := expect.Later(func() egress.Verdict { return connect("r2") })
	w.answer(w.open(1)[0].ApprovalID, judge.Answer{Reason: "revoked"})
	v := <-second
	expect.True(t, !v.Allowed, "a revoked rule lets nobody on: %+v", v)
	v = connect("r1")
	expect.True(t, v.Allowed, "a person's word stands: %+v", v)
}
