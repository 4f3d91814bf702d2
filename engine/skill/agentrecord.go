package skill

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

const (
	bAgentState store.Bucket = "subagent.state" // subagents by their state

	agentResults record.Rows[core.Raw] = "subagent.result" // number, skill name → result
	taskAgents   record.Rows[string]   = "subagent.task"   // task number → id of the subagent made for it
)

func (s *Skills) agentKind() record.Kind[Subagent] {
	return record.Kind[Subagent]{
		Noun: "subagent", Bucket: "subagent", Ledger: s.ledger, Follow: s.follow,
		ID: func(a *Subagent) string { return a.AgentID }, Number: record.UUIDs("agent_id"),
		Head: func(a *Subagent) record.Head {
			return record.Head{Tenant: &a.TenantID, Created: &a.CreatedAt, Updated: &a.UpdatedAt, Seq: &a.AuditSeq}
		},
		Stored: func(a *Subagent) any {
			kept := *a
			kept.Results = nil // beside it
			return &kept
		},
		State:   func(a *Subagent) any { return a.audited() },
		Indexes: []record.Index[Subagent]{{Bucket: bAgentState, Count: string(bAgentState), Word: func(a *Subagent) string { return string(a.State) }}},
	}
}

// saveAgent writes a subagent in place of old.
func (s *Skills) saveAgent(tx *audit.Tx, old, a *Subagent, event string, detail any) error {
	return s.agents.Save(tx, record.Event{Type: event, Trace: a.TraceID, Detail: detail}, old, a)
}

// follow forgets the plan of a subagent that is over; it runs in commit order.
func (s *Skills) follow(tenant, id string, a *Subagent) {
	s.live.Follow(tenant, id, a)
	if a == nil || a.State.Final() {
		s.mu.Lock()
		delete(s.plans, id)
		s.mu.Unlock()
	}
}

// resultsOf is where the results of a tenant's own subagent are.
func resultsOf(tenant, id string) record.Key {
	n, _ := core.LocalUUID("agent_id", tenant, id)
	return record.Seq(n)
}

// withResults fills a subagent's results in.
func withResults(tx store.Tx, a *Subagent) error {
	a.Results = map[string]core.Raw{}
	return agentResults.Each(tx, resultsOf(tx.Tenant(), a.AgentID), func(skill record.Parts, result core.Raw) (bool, error) {
		a.Results[string(skill)] = result
		return true, nil
	})
}

// liveCount is how many subagents of the tenant are not over.
func (s *Skills) liveCount(tx store.Tx) (n int64) {
	for _, state := range liveStates() {
		n += s.agents.Counted(tx, string(bAgentState), string(state))
	}
	return n
}

func liveStates() []State { return []State{Idle, Running, Paused} }
