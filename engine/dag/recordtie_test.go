package dag_test

import (
	"slices"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

func TestDecisionsOfADoorAreAboutTheCallThatTheAgentTellsOf(t *testing.T) {
	for name, early := range map[string]bool{"told of before the door asked": false, "told of afterwards": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			rec, ctx := r.record(), t.Context()
			r.No(rec.Said(ctx, "main", dag.RoleUser, "Make a helper"))
			decide := func(word string) {
				r.No(r.Ledger.Append(ctx, core.Self(acme, "tests"), func(tx *audit.Tx) error {
					return rec.DecideIn(tx, "door-1", core.Raw(`{"decision":"`+word+`"}`))
				}))
			}
			call := func() { r.No(rec.Call(ctx, "acp", "other", "agent-1", core.Raw(`{"title":"create_agent"}`))) }
			if early {
				decide("hitl")
				decide("approve")
				call()
				rec.Tie("door-1", "agent-1")
			} else {
				call()
				rec.Tie("door-1", "agent-1")
				decide("hitl")
				decide("approve")
			}
			r.No(rec.Result(ctx, "agent-1", dag.CallOK, nil, nil))
			r.No(r.finish(rec, true))

			calls := expect.Of(r.Calls(ctx, acme, dag.Query{Run: rec.RunID()}))(r.T)
			expect.Must(t, len(calls.Items) == 1, "%d calls", len(calls.Items))
			of := calls.Items[0]
			down := expect.Of(r.Lineage(ctx, acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeToolCall, ID: of.CallEvent}, Depth: 1, Down: true}))(r.T)
			about := 0
			for _, s := range down.Steps {
				if s.Node.Type == dag.TypeMessage {
					about++
				}
			}
			expect.True(t, about >= 2, "%d decisions are about the call: %+v", about, down.Steps)
			up := expect.Of(r.Lineage(ctx, acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeEvent, ID: of.ResultEvent}, Depth: 50}))(r.T)
			page := expect.Of(r.Events(ctx, acme, dag.Query{Run: rec.RunID()}))(r.T)
			for _, e := range page.Items {
				b, is := e.Event.Body.(*dag.HistoryAppend)
				if is && b.List == dag.ListDecisions && !slices.ContainsFunc(up.Steps, func(s dag.Step) bool { return s.Node.ID == e.Event.EventID }) {
					t.Error("the result does not lead back to a decision")
				}
			}
		})
	}
}
