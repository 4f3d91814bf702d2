package trace

import (
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
)

const (
	// keeper is the agent in whose name the record tells of policies: a run is
	// of one agent. Who acts is in the calls, and a policy that an agent
	// proposed is derived from it.
	keeper = "judge"
	// policyServer has the policies as its resources.
	policyServer = "approval-policy"
	activeURI    = "resource://approval-policy/policy.json"
)

// PolicyStated implements judge.Book: it writes the lives of policies into the record,
// each step in the transaction that makes it. A policy's life is a run of its own, named
// dag.PolicyRuns and the policy: each step is a tool call with its result, and
// what it makes of the policy is a version of its node. Records from before may
// have a run with the policy's bare id, which it goes on from.
func (r *Recorder) PolicyStated(tx *audit.Tx, p judge.Policy, step judge.PolicyStep) error {
	l := &policyLife{tx: tx, p: p}
	if err := l.find(r.DAG); err != nil {
		return err
	}
	if err := l.tell(step); err != nil {
		return err
	}
	if _, err := r.DAG.ObserveIn(tx, l.events...); err != nil {
		return err
	}
	return r.DAG.NotifyIn(tx, l.notices()...)
}

// find looks for the run that a step belongs to. A record from elsewhere may
// have brought another agent's run with such an id: then the next is taken.
func (l *policyLife) find(d *dag.DAG) error {
	l.run = dag.PolicyRuns + l.p.PolicyID
	for n := 2; ; n++ {
		run, err := d.RunIn(l.tx, l.run)
		if err != nil {
			return err
		}
		if l.before, l.last = run.Events, run.Head; run.Events == 0 {
			break
		}
		if run.AgentID == keeper {
			return nil
		}
		l.run = fmt.Sprintf("%s%s~%d", dag.PolicyRuns, l.p.PolicyID, n)
	}
	old, err := d.RunIn(l.tx, l.p.PolicyID)
	if err == nil && old.AgentID == keeper {
		l.old = old.Head
	}
	return err
}

// policyLife gathers the events of one step.
type policyLife struct {
	tx     *audit.Tx
	p      judge.Policy
	run    string // its id
	old    string // the newest event of the run from before that this one goes on from
	before uint64 // events of the policy's run
	last   string // the newest
	id     string // of the step's call, which its events share
	events []dag.Event
}

func (l *policyLife) tell(step judge.PolicyStep) error {
	if l.before == 0 {
		if err := l.begin(step); err != nil {
			return err
		}
	}
	node := nodeOf(&l.p)
	now := dag.At(l.tx.Now())
	ruled := l.p.Status == judge.PolicyActive && (step.Did == judge.DidActivate || step.Did == judge.DidRestore)
	switch {
	case !ruled && step.Did == judge.DidWithdraw:
		node.Valid.From, node.Valid.To = dag.At(l.p.CreatedAt), now
		fallthrough
	case !ruled && step.Did == judge.DidPropose:
		if err := l.call(step, node); err != nil {
			return err
		}
		return l.add(&dag.MCPListChanged{Server: policyServer})
	case !ruled:
		if err := l.call(step, node); err != nil {
			return err
		}
		return l.add(&dag.MCPResourceUpdated{Server: policyServer, URI: l.p.URI, Hash: l.p.Version})
	}
	nodes := []dag.Node{node}
	if old := step.Before; old != nil {
		was := nodeOf(old)
		was.Valid.From, was.Valid.To = dag.At(old.ActivatedAt), now
		nodes = append(nodes, was)
	}
	if err := l.call(step); err != nil {
		return err
	}
	if err := l.add(&dag.PolicyActivated{PolicyRef: l.p.PolicyID, Notes: step.Did + " by " + l.tx.By.Name}, nodes...); err != nil {
		return err
	}
	return l.add(&dag.MCPResourceUpdated{Server: policyServer, URI: activeURI, Hash: l.p.Version})
}

// notices are what agents at work are told of the step.
func (l *policyLife) notices() (all []dag.Body) {
	for _, e := range l.events {
		switch e.Body.(type) {
		case *dag.MCPResourceUpdated, *dag.MCPListChanged:
			all = append(all, e.Body)
		}
	}
	return all
}

// begin tells that the policy's run begins; of a policy that is older than its
// record, also that it was proposed.
func (l *policyLife) begin(step judge.PolicyStep) error {
	if err := l.add(&dag.RunStarted{Reason: "user"}); err != nil {
		return err
	}
	if step.Did == judge.DidPropose || l.p.SourceDigest == "" || l.old != "" {
		return nil
	}
	old := l.p
	old.Status, old.TestsSummary = judge.PolicyProposed, nil
	return l.call(old.Proposed(), nodeOf(&old))
}

// call tells a step as a tool call and its result, which states the nodes.
func (l *policyLife) call(step judge.PolicyStep, nodes ...dag.Node) error {
	l.id = fmt.Sprintf("%s-%d", step.Did, l.before+uint64(len(l.events)))
	args := map[string]any{"policy_id": l.p.PolicyID, "by": l.tx.By.Name, "by_kind": l.tx.By.Kind, "door": l.tx.By.Door}
	for name, v := range step.Args {
		args[name] = v
	}
	err := l.add(&dag.ToolCall{Server: policyServer, Tool: step.Did, CallID: l.id, Args: core.MustEncode(args), RequestedBy: dag.EventRef{EventID: l.last}})
	if err != nil {
		return err
	}
	result := map[string]any{"status": l.p.Status}
	for name, v := range step.Result {
		result[name] = v
	}
	return l.add(&dag.ToolResult{CallID: l.id, Status: dag.CallOK, Result: core.MustEncode(result)}, nodes...)
}

func (l *policyLife) add(body dag.Body, nodes ...dag.Node) error {
	head := dag.Head{TS: dag.At(l.tx.Now()), RunID: l.run, AgentID: keeper, CorrelationID: l.id, Nodes: nodes}
	if l.old != "" && body.Kind() == dag.KindRunStarted {
		head.Parent = &dag.EventRef{EventID: l.old}
	}
	if l.p.ProposedKind == core.Agent && len(nodes) > 0 {
		head.Edges = []dag.Edge{{Type: dag.DerivedFrom, From: nodes[0].Ref(), To: dag.NodeRef{Type: dag.TypeAgent, ID: l.p.ProposedBy}}}
	}
	e, err := dag.NewEvent(head, body)
	if err != nil {
		return err
	}
	l.events, l.last = append(l.events, e), e.EventID
	return nil
}

// nodeOf is a policy as the record has it.
func nodeOf(p *judge.Policy) dag.Node {
	node := &dag.Policy{ID: p.PolicyID, Kind: dag.PolicyProposal, Place: dag.Place{URI: p.URI}, Docstring: p.Name, SourceDigest: p.SourceDigest}
	if p.Status == judge.PolicyActive || p.Status == judge.PolicyRetired {
		node.Kind = dag.PolicyActive
	}
	if p.URI == "" {
		node.Place.URI = activeURI
	}
	if s := p.TestsSummary; s != nil {
		node.TestsSummary = &dag.TestsSummary{Total: int64(s.Total), Passed: int64(s.Passed), Failed: int64(s.Failed)}
	}
	return dag.NewNode(node)
}
