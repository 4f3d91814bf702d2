package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

const (
	lenient = `
schema: 1
name: lenient
rules:
  - {id: all, gates: [tool.call], when: "true", decision: approve, reason_code: lenient.all, risk: low}
`
	lenientCase = `{"name":"a tool","input":{"action":{"tool":"fs.write"}},"expect":{"decision":"approve"}}`
)

// policed is an engine with the tenant t_acme.
func policed(t *testing.T) *Engine {
	t.Helper()
	_, st := open(t)
	e := expect.Of(Open(t.Context(), Options{Store: st}))(t)
	t.Cleanup(func() { _ = e.Close() })
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, "t_acme"))(t)
	return e
}

func TestTheRecordTellsAPolicysLife(t *testing.T) {
	e, ctx := policed(t), t.Context()
	robot := core.Caller{Tenant: "t_acme", Name: "robot", Kind: core.Agent, Door: core.DoorMCP}
	must := func(p judge.Policy, err error) judge.Policy {
		t.Helper()
		expect.No(t, err)
		return p
	}
	in := judge.Proposal{Kind: judge.KindRules, Source: []byte(lenient), Cases: []byte(lenientCase)}
	first := must(e.Judge.Propose(ctx, robot, in))
	again := must(e.Judge.Propose(ctx, alice, in)) // is the same
	expect.Must(t, again.PolicyID == first.PolicyID, "%s, then %s", first.PolicyID, again.PolicyID)
	_, _, err := e.Judge.TestPolicy(ctx, robot, first.PolicyID)
	expect.No(t, err)
	expect.Of(e.Judge.BacktestPolicy(ctx, alice, first.PolicyID, 0))(t)
	must(e.Judge.Activate(ctx, alice, first.PolicyID))
	in.Cases = []byte(strings.Replace(lenientCase, "fs.write", "fs.read", 1))
	second := must(e.Judge.Propose(ctx, alice, in))
	must(e.Judge.Activate(ctx, alice, second.PolicyID))
	must(e.Judge.Restore(ctx, alice, first.PolicyID))
	must(e.Judge.Restore(ctx, alice, judge.BasePolicy))
	must(e.Judge.Withdraw(ctx, alice, second.PolicyID))

	page := expect.Of(e.DAG.Policies(ctx, "t_acme", core.Filter{Size: 50}))(t)
	slices.Reverse(page.Items)
	var got []string
	for _, c := range page.Items {
		name := map[string]string{first.PolicyID: "first", second.PolicyID: "second"}[c.PolicyID]
		if name == "" {
			name = c.PolicyID
		}
		tests := "-"
		if c.Policy.TestsSummary != nil {
			tests = "passed"
		}
		got = append(got, name+" "+c.Change+" "+string(c.Policy.Kind)+" "+tests+" "+c.By+map[bool]string{true: " rules"}[c.Active])
	}
	want := []string{
		"first proposed proposal - robot", "first tested proposal passed robot", "first backtested proposal passed alice",
		"first activated active passed alice", "second proposed proposal - alice", "second activated active passed alice",
		"first activated active passed alice", "default activated active - alice rules", "second withdrawn proposal passed alice",
	}
	expect.True(t, slices.Equal(got, want), "history:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	node, err := e.DAG.Node(ctx, "t_acme", dag.NodeRef{Type: dag.TypePolicy, ID: first.PolicyID})
	expect.True(t, err == nil && !node.Versions[0].Node.Valid.To.IsZero(), "what the embedded policy replaced still holds: %+v %v", node, err)
	calls := expect.Of(e.DAG.Calls(ctx, "t_acme", dag.Query{Run: dag.PolicyRuns + first.PolicyID}))(t)
	var tools []string
	for _, c := range calls.Items {
		tools = append(tools, c.Tool)
		expect.True(t, c.Status == "ok" && c.Server == "approval-policy", "call %+v", c)
	}
	want = []string{"propose", "test", "backtest", "activate", "restore"}
	expect.True(t, slices.Equal(tools, want), "calls %v, want %v", tools, want)
	steps := expect.Of(e.DAG.Lineage(ctx, "t_acme", dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypePolicy, ID: first.PolicyID}}))(t)
	seen := map[dag.EdgeType]bool{}
	for _, s := range steps.Steps {
		seen[s.Edge.Type] = true
	}
	expect.True(t, seen[dag.ProposesPolicy] && seen[dag.ActivatesPolicy] && seen[dag.DerivedFrom], "lineage: %v", seen)
	deltas, err := e.Reconcile(ctx, "t_acme")
	expect.True(t, err == nil && len(deltas) == 0, "%v %v", deltas, err)
}

// Runs with the id of a policy, of whatever agent and however they came here,
// stand in the way of no step.
func TestNobodyTakesTheRunOfAPolicy(t *testing.T) {
	e, ctx := policed(t), t.Context()
	began := func(run, agent string) dag.Event {
		t.Helper()
		return expect.Of(dag.NewEvent(dag.Head{TS: dag.At(time.Now()), RunID: run, AgentID: agent}, &dag.RunStarted{Reason: "user"}))(t)
	}
	if _, err := e.DAG.Emit(ctx, alice, began(judge.BasePolicy, "ada")); err != nil {
		t.Fatal(err)
	}
	_, err := e.DAG.Emit(ctx, alice, began(dag.PolicyRuns+judge.BasePolicy, "ada"))
	if refused := core.AsError(err); err == nil || refused.Code != core.InvalidInput || refused.Details["field"] != "run_id" || !strings.Contains(err.Error(), `"policy:default"`) {
		t.Errorf("an operator emits for the engine: %v", err)
	}
	p, err := e.Judge.Propose(ctx, alice, judge.Proposal{Kind: judge.KindRules, Source: []byte(lenient), Cases: []byte(lenientCase)})
	expect.No(t, err)
	// An import brings what it brings.
	expect.No(t, e.Audit.Append(ctx, alice, func(tx *audit.Tx) error {
		_, err := e.DAG.EmitIn(tx, began("policy:default", "ada"), began("policy:default~2", "eve"))
		return err
	}))
	for _, id := range []string{p.PolicyID, judge.BasePolicy} {
		if id == p.PolicyID {
			_, err = e.Judge.Activate(ctx, alice, id)
		} else {
			_, err = e.Judge.Restore(ctx, alice, id)
		}
		expect.No(t, err, id)
	}
	page, err := e.DAG.Policies(ctx, "t_acme", core.Filter{})
	expect.True(t, err == nil && len(page.Items) != 0 && page.Items[0].RunID == "policy:default~3" && page.Items[0].By == "alice", "%+v %v", page.Items, err)
}

// A policy whose life began in a run with its bare id goes on from there.
func TestAPolicyFromBeforeIsNotProposedAgain(t *testing.T) {
	e, ctx := policed(t), t.Context()
	now := time.Now()
	p := judge.Policy{TenantID: "t_acme", PolicyID: "pol-1", Status: judge.PolicyProposed, Name: "lenient", SourceDigest: "sha256:" + strings.Repeat("0", 64), CreatedAt: now}
	old := expect.Of(dag.NewEvent(dag.Head{TS: dag.At(now), RunID: p.PolicyID, AgentID: "judge"}, &dag.RunStarted{Reason: "user"}))(t)
	expect.No(t, e.Audit.Append(ctx, alice, func(tx *audit.Tx) error {
		if _, err := e.DAG.ObserveIn(tx, old); err != nil {
			return err
		}
		return e.Trace.PolicyStated(tx, p, judge.PolicyStep{Did: judge.DidWithdraw})
	}))
	calls, err := e.DAG.Calls(ctx, "t_acme", dag.Query{Run: "policy:pol-1"})
	expect.True(t, err == nil && len(calls.Items) == 1 && calls.Items[0].Tool == judge.DidWithdraw, "%+v %v", calls.Items, err)
	events, err := e.DAG.Events(ctx, "t_acme", dag.Query{Run: "policy:pol-1"})
	expect.Must(t, err == nil && len(events.Items) != 0, "%+v %v", events.Items, err)
	first := events.Items[0].Event
	expect.True(t, first.Parent != nil && first.Parent.EventID == old.EventID, "it goes on from %+v, not from %s", first.Parent, old.EventID)
}
