package engine

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
)

// policyBook writes proposals and activations of policies into the record, in
// the transaction that makes them.
type policyBook struct{ dag *dag.DAG }

var _ judge.Book = policyBook{}

// keeper is the agent in whose name the record tells of policies.
const keeper = "judge"

// PolicyStated implements judge.Book.
func (b policyBook) PolicyStated(tx *audit.Tx, p judge.Policy, notes string) error {
	node := &dag.Policy{ID: p.PolicyID, Kind: dag.PolicyActive, Place: dag.Place{URI: p.URI}, Docstring: p.Name, SourceDigest: p.SourceDigest}
	if p.URI == "" {
		node.Place.URI = "resource://approval-policy/policy.json"
	}
	if s := p.TestsSummary; s != nil {
		node.TestsSummary = &dag.TestsSummary{Total: int64(s.Total), Passed: int64(s.Passed), Failed: int64(s.Failed)}
	}
	event, err := dag.NewEvent(dag.Head{
		TS: dag.At(tx.Now()), AgentID: keeper, Nodes: []dag.Node{{Type: dag.TypePolicy, Body: node}},
	}, &dag.PolicyActivated{PolicyRef: p.PolicyID, Notes: notes})
	if err != nil {
		return err
	}
	_, err = b.dag.EmitIn(tx, event)
	return err
}
