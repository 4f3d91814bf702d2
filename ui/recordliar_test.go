package ui

import (
	"context"
	"reflect"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
)

// liar is a record in which a text stands wherever agents, servers and files
// say something.
type liar struct {
	pane.RecordWorld
	text string
}

func lied[T any](text string, got T, err error) (T, error) {
	poison(reflect.ValueOf(&got), text, "")
	return got, err
}

func (l liar) Timeline(ctx context.Context, tenant, _ string, f core.Filter) (core.Page[dag.Moment], error) {
	page, err := l.RecordWorld.Timeline(ctx, tenant, "agent:scribe", f)
	poison(reflect.ValueOf(&page.Items), l.text, "")
	return page, err
}

func (l liar) Recorded(ctx context.Context, tenant, name string) (pane.Recorded, error) {
	r, err := l.RecordWorld.Recorded(ctx, tenant, name)
	if err != nil { // a name that was made up
		r, err = l.RecordWorld.Recorded(ctx, tenant, "Resource:vol-work")
	}
	return lied(l.text, r, err)
}

func (l liar) StateAt(ctx context.Context, tenant, event string) (dag.State, error) {
	s, err := l.RecordWorld.StateAt(ctx, tenant, event)
	return lied(l.text, s, err)
}

func (l liar) Around(ctx context.Context, tenant, name string, depth int) (dag.Graph, error) {
	g, err := l.RecordWorld.Around(ctx, tenant, name, depth)
	if err != nil {
		g, err = l.RecordWorld.Around(ctx, tenant, "Agent:scribe", depth)
	}
	for i := range g.Nodes {
		g.Nodes[i].Text = l.text
		if !dag.IsEventID(g.Nodes[i].Node.ID) {
			g.Nodes[i].Node.ID = l.text
		}
	}
	return g, err
}

func (l liar) ProposeFork(_ context.Context, _, _, event string) (resource.Proposal, error) {
	p, err := lied(l.text, resource.Proposal{Name: "x", Task: "x", Parts: []resource.Part{
		{Resource: dag.Resource{Name: "x"}, Choice: resource.Choice{Mode: dag.PlanSnapshot}, Allowed: []dag.Plan{dag.PlanKeep, dag.PlanSnapshot}, Note: "x"},
	}}, nil)
	p.AtEvent, p.Parts[0].Resource.ID, p.Parts[0].Why = event, l.text, map[dag.Plan]string{dag.PlanDiscard: l.text}
	return p, err
}

func (l liar) Policies(_ context.Context, _ string, f core.Filter) (core.Page[judge.Policy], error) {
	f, err := f.Check()
	return core.NewPage([]judge.Policy{l.policy().Policy}, f, 1), err
}

func (l liar) Policy(context.Context, string, string) (judge.PolicyDetail, error) {
	return l.policy(), nil
}

func (l liar) policy() judge.PolicyDetail {
	d, _ := lied(l.text, judge.PolicyDetail{Policy: judge.Policy{
		PolicyID: id("pl", 1), Kind: judge.KindProgram, Status: judge.PolicyActive, ProposedKind: core.Agent, Interpreter: []string{"x"}, FirstBy: "x", Unsandboxed: true,
	}}, nil)
	d.PolicyID = id("pl", 1)
	return d
}

func (l liar) Standing(context.Context, string) (judge.Standing, error) {
	return lied(l.text, judge.Standing{}, nil)
}

func (l liar) Cases(context.Context, core.Caller, string) ([]judge.CaseResult, error) {
	return lied(l.text, []judge.CaseResult{{}, {Passed: true}}, nil)
}

func (l liar) Backtest(context.Context, core.Caller, string, int) (judge.BacktestReport, error) {
	return lied(l.text, judge.BacktestReport{Groups: []judge.Flip{{}}}, nil)
}

func (l liar) Grounds(context.Context, string, string) (judge.Grounds, error) {
	g, err := lied(l.text, judge.Grounds{Explanation: judge.Explanation{Tried: []string{"x"}}}, nil)
	g.Values = map[string]any{l.text: l.text}
	return g, err
}
