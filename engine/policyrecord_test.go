package engine

import (
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
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

func TestTheRecordTellsAPolicysLife(t *testing.T) {
	_, st := open(t)
	e, err := Open(t.Context(), Options{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx := t.Context()
	if _, err := e.Swarm.CreateTenant(ctx, alice, "t_acme"); err != nil {
		t.Fatal(err)
	}
	robot := core.Caller{Tenant: "t_acme", Name: "robot", Kind: core.Agent, Door: core.DoorMCP}
	must := func(p judge.Policy, err error) judge.Policy {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	in := judge.Proposal{Kind: judge.KindRules, Source: []byte(lenient), Cases: []byte(lenientCase)}
	first := must(e.Judge.Propose(ctx, robot, in))
	again := must(e.Judge.Propose(ctx, alice, in)) // is the same
	if again.PolicyID != first.PolicyID {
		t.Fatalf("%s, then %s", first.PolicyID, again.PolicyID)
	}
	if _, _, err := e.Judge.TestPolicy(ctx, robot, first.PolicyID); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Judge.BacktestPolicy(ctx, alice, first.PolicyID, 0); err != nil {
		t.Fatal(err)
	}
	must(e.Judge.Activate(ctx, alice, first.PolicyID))
	in.Cases = []byte(strings.Replace(lenientCase, "fs.write", "fs.read", 1))
	second := must(e.Judge.Propose(ctx, alice, in))
	must(e.Judge.Activate(ctx, alice, second.PolicyID))
	must(e.Judge.Restore(ctx, alice, first.PolicyID))
	must(e.Judge.Restore(ctx, alice, judge.BasePolicy))
	must(e.Judge.Withdraw(ctx, alice, second.PolicyID))

	page, err := e.DAG.Policies(ctx, "t_acme", core.Filter{Size: 50})
	if err != nil {
		t.Fatal(err)
	}
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
	if !slices.Equal(got, want) {
		t.Errorf("history:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	node, err := e.DAG.Node(ctx, "t_acme", dag.NodeRef{Type: dag.TypePolicy, ID: first.PolicyID})
	if err != nil || node.Versions[0].Node.Valid.To.IsZero() {
		t.Errorf("what the embedded policy replaced still holds: %+v %v", node, err)
	}
	calls, err := e.DAG.Calls(ctx, "t_acme", dag.Query{Run: first.PolicyID})
	if err != nil {
		t.Fatal(err)
	}
	var tools []string
	for _, c := range calls.Items {
		if tools = append(tools, c.Tool); c.Status != "ok" || c.Server != policyServer {
			t.Errorf("call %+v", c)
		}
	}
	if want := []string{"propose", "test", "backtest", "activate", "restore"}; !slices.Equal(tools, want) {
		t.Errorf("calls %v, want %v", tools, want)
	}
	steps, err := e.DAG.Lineage(ctx, "t_acme", dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypePolicy, ID: first.PolicyID}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[dag.EdgeType]bool{}
	for _, s := range steps.Steps {
		seen[s.Edge.Type] = true
	}
	if !seen[dag.ProposesPolicy] || !seen[dag.ActivatesPolicy] || !seen[dag.DerivedFrom] {
		t.Errorf("lineage: %v", seen)
	}
	if deltas, err := e.Reconcile(ctx, "t_acme"); err != nil || len(deltas) > 0 {
		t.Errorf("%v %v", deltas, err)
	}
}
