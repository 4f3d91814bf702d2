package dag

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// ListDecisions is the list of a run's decisions; it is no part of the
// conversation.
const ListDecisions = "decisions"

// DecideIn records a decision about a tool call, in the transaction that makes
// it: a message of the list "decisions" with one tool_use part, whose id is
// the call's, whose name is "decision", and whose input says which, by whom and
// why. The message is DERIVED_FROM the call, where that is open. Nothing is
// recorded of a run that has ended.
func (r *Recording) DecideIn(tx *audit.Tx, call string, decision core.Raw) error {
	call = fit(call)
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return nil
	}
	if to := r.tied[call]; to != "" {
		call = to
	}
	h := r.head()
	n := r.message(h.TS, RoleSystem, []ContentPart{{Type: "tool_use", ID: call, Name: "decision", Input: survives(decision, maxValue)}})
	h.Nodes = []Node{n}
	if asked, open := r.calls[call]; open {
		h.CorrelationID = asked.correlation
		if asked.decided != "" {
			h.Parent = &EventRef{asked.decided}
		}
		h.Edges = []Edge{{Type: DerivedFrom, From: n.Ref(), To: NodeRef{TypeToolCall, asked.event}}}
	}
	if early := r.early[call]; len(early) > 0 {
		h.Parent = &EventRef{early[len(early)-1].event}
	}
	r.mu.Unlock()
	e, err := NewEvent(h, &HistoryAppend{List: ListDecisions, MessageRef: n.ID()})
	if err != nil {
		return err
	}
	if _, err = r.d.ObserveIn(tx, e); err == nil {
		tx.OnCommit(func() { r.told(call, e.EventID, n.Ref()) })
	}
	return err
}
