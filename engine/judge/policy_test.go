package judge_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

const mild = `
schema: 1
name: mild
rules:
  - {id: all, gates: [task.start, tool.call, result], when: "true", decision: approve, reason_code: mild.all, risk: low}
`

const mildCases = `{"name":"a tool","input":{"action":{"tool":"fs.write"}},"expect":{"decision":"approve","reason_code":"mild.all"}}`

func (f *fixture) propose(by core.Caller, in judge.Proposal) judge.Policy {
	f.t.Helper()
	p := expect.Of(f.Propose(context.Background(), by, in))(f.t)
	return p
}

func (f *fixture) activated(in judge.Proposal) judge.Policy {
	f.t.Helper()
	p := expect.Of(f.Activate(context.Background(), alice, f.propose(alice, in).PolicyID))(f.t)
	return p
}

func rulesOf(source, cases string) judge.Proposal {
	return judge.Proposal{Kind: judge.KindRules, Source: []byte(source), Cases: []byte(cases)}
}

// scripted answers in place of programs.
type scripted struct {
	reply    judge.Reply
	asked    string
	bare     bool
	released []string
	during   func() // called within a decision
}

func (s *scripted) Decide(_ context.Context, _ *judge.Program, input []byte) judge.Reply {
	s.asked = string(input)
	if s.during != nil {
		s.during()
	}
	r := s.reply
	r.Unsandboxed = s.bare
	return r
}

func (s *scripted) Jailed(context.Context) (bool, string) { return !s.bare, "" }

func (s *scripted) Release(p *judge.Program) { s.released = append(s.released, p.Name) }

func says(decision, reason string) judge.Reply {
	sure := 0.9
	return judge.Reply{Decision: decision, ReasonCode: reason, Confidence: &sure, Rationale: "because"}
}

func withPrograms(s *scripted) func(*judge.Options) {
	return func(o *judge.Options) { o.Programs = s }
}

func programOf(decision string) judge.Proposal {
	return judge.Proposal{
		Kind: judge.KindProgram, Name: "p", Source: []byte("x"), Interpreter: []string{"sh"},
		Cases: []byte(`{"name":"one","input":{"name":"exec_fs.write"},"expect":{"decision":"` + decision + `"}}`),
	}
}

func TestAnActivePolicyRulesItsTenantAndItsVersionIsInDecisions(t *testing.T) {
	f := setup(t)
	before := f.PolicyVersion(acme)
	ap := f.opened(call("fs.write", `{"path":"a"}`))
	expect.Of(f.Answer(context.Background(), alice, ap.ApprovalID, judge.Answer{Approve: true}))(t)
	p := f.activated(rulesOf(mild, mildCases))
	if p.Status != judge.PolicyActive || p.Version == before || p.Version != f.PolicyVersion(acme) || p.TestsSummary.Passed != 1 {
		t.Fatalf("active: %+v, version now %s", p, f.PolicyVersion(acme))
	}
	d, _ := f.commit(call("fs.write", `{"path":"a"}`))
	if d.Decision != judge.Approve || d.RuleID != "all" || d.PolicyVersion != p.Version {
		t.Errorf("got %+v", d)
	}
	if got := f.decision(d.DecisionID); got.PolicyVersion != p.Version || got.RuleID != "all" {
		t.Errorf("read back: %+v", got)
	}
	if f.start(ap.ApprovalID, call("fs.write", `{"path":"a"}`)) {
		t.Error("an approval under the former policy let an effect start")
	}
	expect.Is(t, f.PolicyVersion("t_other"), before, "the policy rules in another tenant")
	f.healthy()
	f.world.Reopen()
	expect.Is(t, f.PolicyVersion(acme), p.Version, "after a restart")
	expect.Of(f.Restore(context.Background(), bob, judge.BasePolicy))(t)
	expect.Is(t, f.PolicyVersion(acme), before, "the embedded policy does not rule after its restoration")
	expect.Of(f.Restore(context.Background(), bob, p.PolicyID))(t)
	expect.Is(t, f.PolicyVersion(acme), p.Version, "the older policy does not rule after its restoration")
	f.healthy()
	for _, want := range []string{"policy.proposed", "policy.activated", "policy.retired", "policy.restored"} {
		if !slices.Contains(f.events(), want) {
			t.Errorf("no event %s", want)
		}
	}
}

func TestNoPolicyLowersTheEmbeddedDenyRules(t *testing.T) {
	s := &scripted{reply: says("approve", "fine")}
	f := setup(t, withPrograms(s))
	havoc := execBy(alice, `{"argv":["rm","-rf","/"]}`)
	// One that also redefines what commands do.
	f.activated(rulesOf(mild+"commands:\n  - {effect: read, names: [rm]}\n", mildCases))
	if d, _ := f.commit(havoc); d.Decision != judge.Deny || d.ReasonCode != "catastrophic" {
		t.Errorf("rules: %+v", d)
	}
	f.activated(programOf("approve"))
	if d, _ := f.commit(havoc); d.Decision != judge.Deny || d.ReasonCode != "catastrophic" {
		t.Errorf("program: %+v", d)
	}
	f.healthy()
}

func TestOnlyAPersonActivatesAndOnlyWhatPassesItsCases(t *testing.T) {
	f := setup(t)
	ctx := context.Background()
	good := f.propose(robot, rulesOf(mild, mildCases))
	_, err := f.Activate(ctx, robot, good.PolicyID)
	expect.Is(t, code(err), core.Denied, "an agent")
	_, err = f.Restore(ctx, robot, judge.BasePolicy)
	expect.Is(t, code(err), core.Denied, "an agent restores")
	bad := f.propose(robot, rulesOf(mild, strings.Replace(mildCases, `"approve"`, `"deny"`, 1)))
	_, err = f.Activate(ctx, alice, bad.PolicyID)
	expect.Is(t, code(err), core.Conflict, "failing cases")
	none := f.propose(robot, rulesOf(mild, ""))
	_, err = f.Activate(ctx, alice, none.PolicyID)
	expect.Is(t, code(err), core.Conflict, "no cases")
	tested, results, err := f.TestPolicy(ctx, robot, bad.PolicyID)
	if err != nil || tested.TestsSummary.Failed != 1 || results[0].Passed {
		t.Errorf("got %+v %+v %v", tested.TestsSummary, results, err)
	}
	_, err = f.Withdraw(ctx, core.Caller{Tenant: acme, Name: "other", Kind: core.Agent}, good.PolicyID)
	expect.Is(t, code(err), core.Denied, "another agent withdraws")
	if p, err := f.Withdraw(ctx, robot, good.PolicyID); err != nil || p.Status != judge.PolicyWithdrawn {
		t.Errorf("its own: %+v %v", p, err)
	}
	_, err = f.Activate(ctx, alice, good.PolicyID)
	expect.Is(t, code(err), core.Conflict, "a withdrawn one")
	f.healthy()
}

func TestTwoPersonsActivateWhereTheTenantAsks(t *testing.T) {
	f := setup(t)
	ctx := context.Background()
	expect.Of(f.SetTerms(ctx, alice, judge.PolicyTerms{TwoPersons: true}))(t)
	p := f.propose(alice, rulesOf(mild, mildCases))
	for _, name := range []string{"alice", "alice", "eve"} { // the same person is one person, under another name too
		by := alice
		by.Name, by.Person = name, "uid:1"
		if got, err := f.Activate(ctx, by, p.PolicyID); err != nil || got.Status != judge.PolicyProposed || got.FirstBy != name {
			t.Fatalf("got %+v %v", got, err)
		}
		if got, err := f.SetTerms(ctx, by, judge.PolicyTerms{}); err != nil || !got.TwoPersons {
			t.Errorf("one person loosened the terms: %+v %v", got, err)
		}
	}
	if got, err := f.Activate(ctx, bob, p.PolicyID); err != nil || got.Status != judge.PolicyActive {
		t.Errorf("got %+v %v", got, err)
	}
	if got, err := f.SetTerms(ctx, bob, judge.PolicyTerms{}); err != nil || got.TwoPersons {
		t.Errorf("two persons could not: %+v %v", got, err)
	}
	f.healthy()
}

func TestAProgramsWordIsTheDecision(t *testing.T) {
	s := &scripted{reply: says("abort", "run.ends"), bare: true}
	f := setup(t, withPrograms(s))
	f.activated(programOf("abort"))
	d, _ := f.commit(call("fs.write", `{"path":"a"}`))
	if d.Decision != judge.Deny || !d.Abort || d.ReasonCode != "run.ends" || !d.Unsandboxed || d.Rationale != "because" || d.Word() != "abort" || d.Decider() != "the policy" {
		t.Errorf("got %+v", d)
	}
	if got := f.decision(d.DecisionID); !got.Abort || !got.Unsandboxed || got.Rationale != "because" {
		t.Errorf("read back: %+v", got)
	}
	for _, want := range []string{`"name":"exec_fs.write"`, `"arguments":{"path":"a"}`, `"gate":"tool.call"`, `"tenant_id":"t_acme"`} {
		expect.Has(t, s.asked, want, "the program read")
	}
	s.reply = judge.FaultReply(judge.ReasonTimeout, "late")
	d, ap := f.commit(call("fs.write", `{"path":"a"}`))
	if d.Decision != judge.HITL || d.ReasonCode != judge.ReasonTimeout || *d.Confidence != 0 || ap == nil || !ap.Unsandboxed {
		t.Errorf("got %+v %+v", d, ap)
	}
	f.healthy()
}

func TestAJailCanBeAskedFor(t *testing.T) {
	s := &scripted{reply: says("approve", "ok"), bare: true}
	f := setup(t, withPrograms(s))
	expect.Of(f.SetTerms(context.Background(), alice, judge.PolicyTerms{Jailed: true}))(t)
	p := f.propose(alice, programOf("approve"))
	if !p.Unsandboxed {
		t.Error("it does not say that it can't be jailed")
	}
	_, err := f.Activate(context.Background(), alice, p.PolicyID)
	expect.Is(t, code(err), core.Denied)
}

func TestAQuestionRunsNoProposedProgramWithoutAJail(t *testing.T) {
	s := &scripted{reply: says("approve", "ok"), bare: true}
	f := setup(t, withPrograms(s))
	p := f.propose(robot, programOf("approve"))
	ask := core.Raw(`{"name":"exec_fs.write"}`)
	if _, err := f.Explain(t.Context(), acme, p.PolicyID, ask); code(err) != core.Denied || s.asked != "" {
		t.Errorf("got %v; the program was asked %q", err, s.asked)
	}
	if _, err := f.Explain(t.Context(), acme, f.propose(robot, rulesOf(mild, mildCases)).PolicyID, ask); err != nil {
		t.Errorf("a table: %v", err)
	}
	expect.Of(f.Activate(t.Context(), alice, p.PolicyID))(t)
	if e, err := f.Explain(t.Context(), acme, p.PolicyID, ask); err != nil || e.Decision != "approve" || s.asked == "" {
		t.Errorf("the program that rules: %+v %v", e, err)
	}
}

func TestAnAgentRunsNoProgramWithoutAJail(t *testing.T) {
	s := &scripted{reply: says("approve", "ok"), bare: true}
	f := setup(t, withPrograms(s))
	p := f.propose(robot, programOf("approve"))
	_, _, err := f.TestPolicy(context.Background(), robot, p.PolicyID)
	expect.Is(t, code(err), core.Denied, "test")
	_, err = f.BacktestPolicy(context.Background(), robot, p.PolicyID, 0)
	expect.Is(t, code(err), core.Denied, "backtest")
	expect.Is(t, s.asked, "", "it ran")
	if p, _, err := f.TestPolicy(context.Background(), alice, p.PolicyID); err != nil || p.TestsSummary.Passed != 1 {
		t.Errorf("an operator: %+v %v", p, err)
	}
	f.healthy()
}

func TestABacktestGroupsWhatWouldChange(t *testing.T) {
	f := setup(t)
	f.commit(call("read_file", `{"path":"README.md"}`))
	f.commit(call("fs.write", `{"path":"a"}`))
	f.commit(call("fs.write", `{"path":"b"}`))
	p := f.propose(robot, rulesOf(mild, mildCases))
	rep := expect.Of(f.BacktestPolicy(context.Background(), alice, p.PolicyID, 0))(t)
	if rep.Checked != 3 || rep.Flips != 2 || len(rep.Groups) != 1 {
		t.Fatalf("got %+v", rep)
	}
	if g := rep.Groups[0]; g.From != "hitl" || g.To != "approve" || g.Tool != "fs.write" || g.Count != 2 || len(g.Examples) != 2 {
		t.Errorf("got %+v", g)
	}
}

func TestExplainTellsTheRuleAndWhatItReadWithoutEffect(t *testing.T) {
	f := setup(t)
	before := len(f.events())
	e := expect.Of(f.Explain(context.Background(), acme, "", core.Raw(`{"name":"exec_fs.write","arguments":{"path":"a"}}`)))(t)
	if e.Decision != "hitl" || e.RuleID != "tool.write" || e.Values["action.effects"] == nil || !slices.Contains(e.Tried, "tool.read-only") {
		t.Errorf("got %+v", e)
	}
	if open, _ := f.Open(context.Background(), acme); len(open) != 0 || len(f.events()) != before {
		t.Error("asking had an effect")
	}
}

func TestBadProposalsNameTheField(t *testing.T) {
	f := setup(t, withPrograms(&scripted{}))
	for name, c := range map[string]struct {
		in    judge.Proposal
		field string
	}{
		"no source":      {judge.Proposal{Kind: judge.KindRules}, "source"},
		"kind":           {judge.Proposal{Kind: "x", Source: []byte("x")}, "kind"},
		"no interpreter": {judge.Proposal{Kind: judge.KindProgram, Source: []byte("x")}, "interpreter"},
		"gate":           {judge.Proposal{Kind: judge.KindProgram, Source: []byte("#!/bin/sh"), Gates: []judge.Gate{"x"}}, "gates"},
		"case":           {rulesOf(mild, `{"name":"x","input":{},"expect":{"decision":"allow"}}`), "expect.decision"},
		"case input":     {rulesOf(mild, `{"name":"x","input":{"nope":1},"expect":{"decision":"deny"}}`), "nope"},
	} {
		_, err := f.Propose(context.Background(), alice, c.in)
		if code(err) != core.InvalidInput || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: got %v, want %s named", name, err, c.field)
		}
	}
}

func TestTheExampleTablePassesItsCases(t *testing.T) {
	f := setup(t)
	read := func(name string) []byte {
		b := expect.Of(os.ReadFile(filepath.Join("..", "..", "examples", "policies", name)))(t)
		return b
	}
	f.activated(judge.Proposal{Kind: judge.KindRules, Source: read("writes.yaml"), Cases: read("writes.jsonl")})
}

func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"decision":"approve","reason_code":"ok","confidence":1,"rationale":""}`))
	f.Add([]byte(`{"decision":"allow"}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		r, err := judge.ParseReply(out)
		if err == nil && (!slices.Contains([]string{"approve", "deny", "abort", "hitl"}, r.Decision) || r.Confidence == nil || *r.Confidence < 0 || *r.Confidence > 1) {
			t.Errorf("accepted %+v", r)
		}
	})
}

func BenchmarkTenantPolicy(b *testing.B) {
	f := setup(b)
	f.activated(rulesOf(mild, mildCases))
	ask := call("fs.write", `{"path":"/srv/notes/a"}`)
	for b.Loop() {
		if v := f.Evaluate(context.Background(), acme, ask); v.Decision != judge.Approve {
			b.Fatal(v.ReasonCode)
		}
	}
}
