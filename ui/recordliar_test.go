package ui

import (
	"context"
	"reflect"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane/record"
)

// liar is a record in which a text stands wherever agents, servers and files
// say something.
type liar struct {
	record.DAG
	text string
}

func lied[T any](text string, got T, err error) (T, error) {
	poison(reflect.ValueOf(&got), text, "")
	return got, err
}

func (l liar) Subject(ctx context.Context, tenant, _ string, q *dag.Query) error {
	return l.DAG.Subject(ctx, tenant, "agent:scribe", q)
}

func (l liar) Timeline(ctx context.Context, tenant string, q dag.Query) (core.Page[dag.Moment], error) {
	page, err := l.DAG.Timeline(ctx, tenant, q)
	poison(reflect.ValueOf(&page.Items), l.text, "")
	return page, err
}

// anything is found by a name that was made up.
var anything = dag.NodeRef{Type: dag.TypeResource, ID: "vol-work"}

func (l liar) FindNode(ctx context.Context, tenant, name string) (dag.NodeRef, error) {
	if ref, err := l.DAG.FindNode(ctx, tenant, name); err == nil {
		return ref, nil
	}
	return anything, nil
}

func (l liar) Get(ctx context.Context, tenant, event string) (dag.Detail, error) {
	d, err := l.DAG.Get(ctx, tenant, event)
	return lied(l.text, d, err)
}

func (l liar) Node(ctx context.Context, tenant string, ref dag.NodeRef) (dag.NodeInfo, error) {
	n, err := l.DAG.Node(ctx, tenant, ref)
	return lied(l.text, n, err)
}

func (l liar) At(ctx context.Context, tenant, event string) (dag.State, error) {
	s, err := l.DAG.At(ctx, tenant, event)
	return lied(l.text, s, err)
}

func (l liar) Around(ctx context.Context, tenant string, q dag.LineageQuery) (dag.Graph, error) {
	if q.Node == anything {
		q.Node = dag.NodeRef{Type: dag.TypeAgent, ID: "scribe"}
	}
	g, err := l.DAG.Around(ctx, tenant, q)
	for i := range g.Nodes {
		g.Nodes[i].Text = l.text
		if !dag.IsEventID(g.Nodes[i].Node.ID) {
			g.Nodes[i].Node.ID = l.text
		}
	}
	return g, err
}

func (l liar) Plan(_ context.Context, _ string, q resource.ForkRequest) (resource.Proposal, error) {
	p, err := lied(l.text, resource.Proposal{Name: "x", Task: "x", Parts: []resource.Part{
		{Resource: dag.Resource{Name: "x"}, Choice: resource.Choice{Mode: dag.PlanSnapshot}, Allowed: []dag.Plan{dag.PlanKeep, dag.PlanSnapshot}, Note: "x"},
	}}, nil)
	p.AtEvent, p.Parts[0].Resource.ID, p.Parts[0].Why = q.At, l.text, map[dag.Plan]string{dag.PlanDiscard: l.text}
	return p, err
}

// lyingJudge has the text in all that it says of policies.
type lyingJudge struct {
	rulings
	text string
}

func (l lyingJudge) Policies(context.Context, string) ([]judge.Policy, error) {
	return []judge.Policy{l.policy().Policy}, nil
}

func (l lyingJudge) GetPolicy(context.Context, string, string) (judge.PolicyDetail, error) {
	return l.policy(), nil
}

func (l lyingJudge) policy() judge.PolicyDetail {
	d, _ := lied(l.text, judge.PolicyDetail{Policy: judge.Policy{
		PolicyID: id("pl", 1), Kind: judge.KindProgram, Status: judge.PolicyActive, ProposedKind: core.Agent, Interpreter: []string{"x"}, FirstBy: "x", Unsandboxed: true,
	}}, nil)
	d.PolicyID = id("pl", 1)
	return d
}

func (l lyingJudge) Standing(context.Context, string) (judge.Standing, error) {
	return lied(l.text, judge.Standing{}, nil)
}

func (l lyingJudge) TryCases(context.Context, core.Caller, string) ([]judge.CaseResult, judge.TestsSummary, error) {
	all, err := lied(l.text, []judge.CaseResult{{}, {Passed: true}}, nil)
	return all, judge.TestsSummary{}, err
}

func (l lyingJudge) TryBacktest(context.Context, core.Caller, string, int) (judge.BacktestReport, error) {
	return lied(l.text, judge.BacktestReport{Groups: []judge.Flip{{}}}, nil)
}

func (l lyingJudge) Grounds(context.Context, string, string) (judge.Grounds, error) {
	g, err := lied(l.text, judge.Grounds{Explanation: judge.Explanation{Tried: []string{"x"}}}, nil)
	g.Values = map[string]any{l.text: l.text}
	return g, err
}
