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

// A call of a tool of ours has two ids: the one under which its agent tells of it, and the
// one under which the door that it came to had it judged. The record has one call, which
// the decisions are about.

// loose is a decision about a call that the record does not have yet.
type loose struct {
	event   string
	message NodeRef
}

// maxTied bounds the ids of a run that stand for other calls, and what waits for some.
const maxTied = 1000

// Tie has decisions about one call, by its id, be about another: those to come, and those
// that were told before the other was.
func (r *Recording) Tie(call, to string) {
	call, to = fit(call), fit(to)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tied) >= maxTied || call == to {
		return
	}
	if r.tied == nil {
		r.tied = map[string]string{}
	}
	r.tied[call] = to
	early := r.early[call]
	delete(r.early, call)
	if c, open := r.calls[to]; open && len(early) > 0 {
		c.decided, c.early = early[len(early)-1].event, append(c.early, early...)
		r.calls[to] = c
	}
}

// told says that a decision is in the record, which a call's result follows.
func (r *Recording) told(call, event string, message NodeRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, open := r.calls[call]; open {
		c.decided = event
		r.calls[call] = c
		return
	}
	if r.early == nil {
		r.early = map[string][]loose{}
	}
	if r.ended[call] == "" && len(r.early) < maxTied {
		r.early[call] = append(r.early[call], loose{event, message})
	}
}
