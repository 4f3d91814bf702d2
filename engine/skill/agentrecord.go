package skill

import (
	"bytes"
	"encoding/binary"
	"errors"
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

func numberKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func numberAt(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// nameKey puts a word before a number. Words hold no zero byte.
func nameKey(word string, n uint64) []byte {
	b := make([]byte, 0, len(word)+9)
	b = append(append(b, word...), 0)
	return binary.BigEndian.AppendUint64(b, n)
}

// wordSpan is the range of keys that begin with prefix and a zero byte.
func wordSpan(word string) (from, to []byte) {
	return append([]byte(word), 0), append([]byte(word), 1)
}

// numberSpan is the range of keys that begin with a number.
func numberSpan(n uint64) (from, to []byte) { return numberKey(n), numberKey(n + 1) }

// taskNumber is the number in a task's id, which the swarm made.
func taskNumber(id string) uint64 {
	_, _, n, _ := core.ParseID(id)
	return n
}

// agentNumber is the number in the id of a tenant's own subagent.
func agentNumber(tenant, id string) uint64 {
	n, _ := core.LocalUUID("agent_id", tenant, id)
	return n
}

// loadAgent reads a subagent without its results. The whole id counts: its
// random part is no ornament.
func loadAgent(tx store.Tx, id string) (*Subagent, error) {
	n, err := core.LocalUUID("agent_id", tx.Tenant(), id)
	if err != nil {
		return nil, err
	}
	a, err := loadAgentNumber(tx, n)
	if err != nil {
		return nil, err
	}
	if a == nil || a.AgentID != id {
		return nil, core.Missing("subagent", id)
	}
	return a, nil
}

// loadAgentNumber returns nil when there is none.
func loadAgentNumber(tx store.Tx, n uint64) (*Subagent, error) {
	data, err := tx.Get(bAgent, numberKey(n))
	if err != nil || data == nil {
		return nil, err
	}
	return decodeAgent(data)
}

func decodeAgent(data []byte) (*Subagent, error) {
	a := new(Subagent)
	if err := core.DecodeStored(bytes.Clone(data), a); err != nil {
		return nil, fmt.Errorf("decode a subagent: %w", err)
	}
	a.Results = map[string]core.Raw{}
	return a, nil
}

// withResults fills a subagent's results in.
func withResults(tx store.Tx, a *Subagent) error {
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
			if err := tx.Delete(bAgentState, nameKey(string(was), n)); err != nil {
				return err
			}
		}
		tx.Add(countState(a.State), 1)
		if err := tx.Put(bAgentState, nameKey(string(a.State), n), nil); err != nil {
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

// eachAgent calls each for the subagents of a state, or all with "".
func eachAgent(tx store.Tx, state State, each func(*Subagent) error) error {
	var bad error
	visit := func(a *Subagent, err error) bool {
		if bad = err; bad == nil && a != nil {
			bad = each(a)
		}
		return bad == nil
	}
	if state == "" {
		err := tx.Scan(bAgent, nil, nil, false, func(_, value []byte) bool { return visit(decodeAgent(value)) })
		return errors.Join(err, bad)
	}
	from, to := wordSpan(string(state))
	err := tx.Scan(bAgentState, from, to, false, func(key, _ []byte) bool { return visit(loadAgentNumber(tx, numberAt(key))) })
	return errors.Join(err, bad)
}
