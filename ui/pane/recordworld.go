package pane

import (
	"context"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/judge"
)

// RecordWorld is what the cockpit reads of the agents' record, and of the
// policies.
type RecordWorld interface {
	// Timeline is the history of run:ID, task:ID, agent:NAME or session:ID, or
	// of the newest run of an agent with a bare NAME, the oldest first, as short
	// as rows show it.
	Timeline(ctx context.Context, tenant, subject string, f core.Filter) (core.Page[dag.Moment], error)
	// Recorded is an event, or a node, by an id or its beginning or TYPE:ID.
	Recorded(ctx context.Context, tenant, name string) (Recorded, error)
	StateAt(ctx context.Context, tenant, event string) (dag.State, error)
	Around(ctx context.Context, tenant, name string, depth int) (dag.Graph, error)
	// ProposeFork says what a fork of an agent at an event would be.
	ProposeFork(ctx context.Context, tenant, agent, event string) (resource.Proposal, error)

	// Policies are the tenant's, the newest first, and the embedded one.
	Policies(ctx context.Context, tenant string, f core.Filter) (core.Page[judge.Policy], error)
	Policy(ctx context.Context, tenant, id string) (judge.PolicyDetail, error)
	Standing(ctx context.Context, tenant string) (judge.Standing, error)
	// Cases and Backtest run a policy, without effect: they may take a while.
	Cases(ctx context.Context, by core.Caller, policy string) ([]judge.CaseResult, error)
	Backtest(ctx context.Context, by core.Caller, policy string, last int) (judge.BacktestReport, error)
	Grounds(ctx context.Context, tenant, id string) (judge.Grounds, error)
	// Card is an approval with what its files hold.
	Card(ctx context.Context, tenant, id string) (judge.Approval, error)
}

// Recorded is what the record has under a name: an event, or else a node.
type Recorded struct {
	Event *dag.Detail
	Node  *dag.NodeInfo
}

// TimelineOf is the timeline of a thing, empty for one that has none.
func TimelineOf(it Item) Item {
	kind, id := it.Kind, it.ID
	switch {
	case kind == "agent" || kind == "task" || kind == "session":
	case kind == "record" && it.Part != "": // an event knows its run
		kind, id = "run", it.Part
	case it.Task != "":
		kind, id = "task", it.Task
	case it.Agent != "":
		kind, id = "agent", it.Agent
	default:
		return Item{}
	}
	return Item{Kind: "timeline", ID: kind + ":" + id, Task: it.Task, Agent: it.Agent, Session: it.Session}
}

// LineageOf is the graph around a node of the record.
func LineageOf(ref dag.NodeRef) Item {
	if ref.ID == "" {
		return Item{}
	}
	return Item{Kind: "lineage", ID: ref.String()}
}

// RecordOf is the sheet of a node of the record.
func RecordOf(ref dag.NodeRef) Item {
	return Item{Kind: "record", ID: ref.String()}
}

func (w world) Timeline(ctx context.Context, tenant, subject string, f core.Filter) (core.Page[dag.Moment], error) {
	q := dag.Query{Filter: f, Short: true}
	if err := w.DAG.Subject(ctx, tenant, subject, &q); err != nil {
		return core.Page[dag.Moment]{}, err
	}
	return w.DAG.Timeline(ctx, tenant, q)
}

func (w world) Recorded(ctx context.Context, tenant, name string) (r Recorded, err error) {
	ref, err := w.DAG.FindNode(ctx, tenant, name)
	if err != nil {
		return r, err
	}
	if dag.IsEventID(ref.ID) && ref.Type != dag.TypeMessage {
		if e, err := w.DAG.Get(ctx, tenant, ref.ID); err == nil {
			return Recorded{Event: &e}, nil
		}
	}
	n, err := w.DAG.Node(ctx, tenant, ref)
	return Recorded{Node: &n}, err
}

func (w world) StateAt(ctx context.Context, tenant, event string) (dag.State, error) {
	return w.DAG.At(ctx, tenant, event)
}

func (w world) Around(ctx context.Context, tenant, name string, depth int) (dag.Graph, error) {
	ref, err := w.DAG.FindNode(ctx, tenant, name)
	if err != nil {
		return dag.Graph{}, err
	}
	return w.DAG.Around(ctx, tenant, dag.GraphQuery{Node: ref, Depth: depth})
}

func (w world) ProposeFork(ctx context.Context, tenant, agent, event string) (resource.Proposal, error) {
	return w.Resources.ProposeFork(ctx, tenant, agent, event)
}

func (w world) Policies(ctx context.Context, tenant string, f core.Filter) (core.Page[judge.Policy], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[judge.Policy]{}, err
	}
	all, err := w.Judge.Policies(ctx, tenant)
	if err != nil {
		return core.Page[judge.Policy]{}, err
	}
	now, err := w.Judge.Standing(ctx, tenant)
	if err != nil {
		return core.Page[judge.Policy]{}, err
	}
	base := judge.Policy{TenantID: tenant, PolicyID: judge.BasePolicy, Kind: judge.KindRules, Status: judge.PolicyRetired, Name: "embedded"}
	if now.PolicyID == judge.BasePolicy {
		base.Status, base.Version = judge.PolicyActive, now.Version
	}
	kept := all[:0]
	for _, p := range append(all, base) {
		text := strings.ToLower(strings.Join([]string{p.PolicyID, p.Name, p.SourceDigest, p.ProposedBy, string(p.Status)}, " "))
		if (f.Status == "" || f.Status == string(p.Status)) && (f.Kind == "" || f.Kind == string(p.Kind)) &&
			(f.Agent == "" || f.Agent == p.ProposedBy) && strings.Contains(text, strings.ToLower(f.Match)) {
			kept = append(kept, p)
		}
	}
	from := min(f.Offset(), len(kept))
	return core.NewPage(kept[from:min(from+f.Size, len(kept))], f, len(kept)), nil
}

func (w world) Policy(ctx context.Context, tenant, id string) (judge.PolicyDetail, error) {
	return w.Judge.GetPolicy(ctx, tenant, id)
}

func (w world) Standing(ctx context.Context, tenant string) (judge.Standing, error) {
	return w.Judge.Standing(ctx, tenant)
}

func (w world) Cases(ctx context.Context, by core.Caller, policy string) ([]judge.CaseResult, error) {
	all, _, err := w.Judge.TryCases(ctx, by, policy)
	return all, err
}

func (w world) Backtest(ctx context.Context, by core.Caller, policy string, last int) (judge.BacktestReport, error) {
	return w.Judge.TryBacktest(ctx, by, policy, last)
}

func (w world) Card(ctx context.Context, tenant, id string) (judge.Approval, error) {
	return w.Judge.Card(ctx, tenant, id)
}

func (w world) Grounds(ctx context.Context, tenant, id string) (judge.Grounds, error) {
	return w.Judge.Grounds(ctx, tenant, id)
}
