package skill

import (
	"bytes"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Buckets of subagents in a tenant. A number is 8 bytes, big-endian.
const (
	bAgent       store.Bucket = "subagent"        // number → Subagent, without results
	bAgentState  store.Bucket = "subagent.state"  // state, 0, number
	bAgentResult store.Bucket = "subagent.result" // number, skill name → result
	bTaskAgent   store.Bucket = "subagent.task"   // task number → id of the subagent made for it
)

// Counters.
const countAgents = "subagent"

func countState(s State) string { return countAgents + "." + string(s) }

// agentNumber is the number in the id of a tenant's own subagent.
func agentNumber(tenant, id string) uint64 {
	n, _ := core.LocalUUID("agent_id", tenant, id)
	return n
}

// loadAgent reads a subagent without its results.
func loadAgent(tx store.Tx, id string) (*Subagent, error) { return subagents().load(tx, id) }

// withResults fills a subagent's results in.
func withResults(tx store.Tx, a *Subagent) error {
	a.Results = map[string]core.Raw{}
	from, to := numberSpan(agentNumber(tx.Tenant(), a.AgentID))
	return tx.Scan(bAgentResult, from, to, false, func(key, value []byte) bool {
		a.Results[string(key[8:])] = bytes.Clone(value)
		return true
	})
}

// saveAgent writes a subagent with its audit event, its place in the index of
// states and its counters. was is the state before, "" for a new one. It is
// the only way a subagent changes.
func (s *Skills) saveAgent(tx *audit.Tx, a *Subagent, was State, event string, detail any) error {
	a.UpdatedAt = tx.Now()
	seq, err := tx.Record(audit.Entry{
		Type: event, Trace: a.TraceID, Subject: "subagent", ID: a.AgentID, State: a.audited(), Detail: detail, Prev: a.AuditSeq,
	})
	if err != nil {
		return err
	}
	a.AuditSeq = seq
	n := agentNumber(tx.Tenant(), a.AgentID)
	if was != a.State {
		if was != "" {
			tx.Add(countState(was), -1)
			if err := tx.Delete(bAgentState, wordKey(string(was), n)); err != nil {
				return err
			}
		}
		tx.Add(countState(a.State), 1)
		if err := tx.Put(bAgentState, wordKey(string(a.State), n), nil); err != nil {
			return err
		}
	}
	c := *a
	c.Results = nil
	data, err := core.Encode(&c)
	if err != nil {
		return fmt.Errorf("encode subagent %s: %w", a.AgentID, err)
	}
	tx.OnCommit(func() { s.saved(&c) })
	tx.Changed("subagent", a.AgentID, &c)
	return tx.Put(bAgent, numberKey(n), data)
}

// saved keeps the live ones in mind; it runs in commit order.
func (s *Skills) saved(a *Subagent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.State.Final() {
		delete(s.live[a.TenantID], a.AgentID)
		delete(s.plans, a.AgentID)
		return
	}
	if s.live[a.TenantID] == nil {
		s.live[a.TenantID] = map[string]*Subagent{}
	}
	s.live[a.TenantID][a.AgentID] = a
}

// liveCount is how many subagents of the tenant are not over.
func liveCount(tx store.Tx) int64 {
	return tx.Counter(countState(Idle)) + tx.Counter(countState(Running)) + tx.Counter(countState(Paused))
}
