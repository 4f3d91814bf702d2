package fleet

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Buckets of a tenant.
const (
	bAgent     store.Bucket = "agent"           // name → Agent
	bProject   store.Bucket = "project"         // name → Project
	bRole      store.Bucket = "role"            // project, 0, name → Role
	bAttention store.Bucket = "agent.attention" // task id → why it asked for a person
)

func countStatus(s AgentStatus) string { return "agent.status." + string(s) }

// errSame makes a change end without a write.
var errSame = errors.New("nothing changed")

// state is what the audit log says about an agent.
type state struct {
	Status  AgentStatus `json:"status"`
	Role    string      `json:"role"`
	Project string      `json:"project"`
	Runtime string      `json:"runtime"`
	Task    string      `json:"task_id,omitempty"`
	Waiting string      `json:"waiting,omitempty"`
	Paused  bool        `json:"paused,omitzero"`
	Pausing bool        `json:"pausing,omitzero"`
	Stopped bool        `json:"stopped,omitzero"`
	Stuck   StuckKind   `json:"stuck,omitempty"`
}

func stateOf(a *Agent) state {
	s := state{a.Status, a.Role, a.Project, a.Runtime, a.TaskID, a.Waiting, a.Paused, a.Pausing, a.Stopped, ""}
	if a.Stuck != nil {
		s.Stuck = a.Stuck.Kind
	}
	return s
}

// note is what a change says about itself in the audit log.
type note struct {
	event  string
	trace  string
	detail any
}

// load returns nil when there is no such agent.
func load(tx store.Tx, name string) (*Agent, error) {
	data, err := tx.Get(bAgent, []byte(name))
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", name, err)
	}
	if data == nil {
		return nil, nil
	}
	return decodeAgent(name, data)
}

// stored is an agent as it is kept, with all of its environment.
type stored struct {
	*Agent
	Env map[string]string `json:"env,omitempty"`
}

func decodeAgent(name string, data []byte) (*Agent, error) {
	a := new(Agent)
	if err := core.DecodeStored(data, a); err != nil {
		return nil, &core.Damaged{Noun: "agent", Key: name, Err: err}
	}
	return a, nil
}

// eachAgent visits the agents that can be read; the error names the others.
func eachAgent(tx store.Tx, each func(*Agent)) error {
	var bad []error
	err := tx.Scan(bAgent, nil, nil, false, func(key, value []byte) bool {
		a, err := decodeAgent(string(key), value)
		if err != nil {
			bad = append(bad, err)
			return true
		}
		each(a)
		return true
	})
	return errors.Join(append(bad, err)...)
}

// save writes an agent with its audit event, counters and change record. was
// is the status before, "" for a new agent. It is the only way a record of
// the fleet changes, but for put.
func (f *Fleet) save(tx *audit.Tx, m *member, a *Agent, was AgentStatus, n note) error {
	a.UpdatedAt = tx.Now()
	seq, err := tx.Record(audit.Entry{
		Type: n.event, Trace: n.trace, Subject: "agent", ID: a.Name,
		State: stateOf(a), Detail: n.detail, Prev: a.AuditSeq,
	})
	if err != nil {
		return err
	}
	a.AuditSeq = seq
	return f.put(tx, m, a, was)
}

// put is save for what an event about something else says already.
func (f *Fleet) put(tx *audit.Tx, m *member, a *Agent, was AgentStatus) error {
	data, err := core.Encode(stored{a, a.Env})
	if err != nil {
		return fmt.Errorf("encode agent %s: %w", a.Name, err)
	}
	if err := tx.Put(bAgent, []byte(a.Name), data); err != nil {
		return err
	}
	if was != a.Status {
		if was != "" {
			tx.Add(countStatus(was), -1)
		}
		tx.Add(countStatus(a.Status), 1)
	}
	c := *a
	tx.OnCommit(func() { m.saved(&c) })
	tx.Changed("agent", a.Name, &c)
	return nil
}

// change applies fn to an agent's newest record, works out the status that
// follows, and saves it. fn may return errSame to leave everything as it is.
func (f *Fleet) change(ctx context.Context, by core.Caller, m *member, n note, fn func(tx *audit.Tx, a *Agent) error) (Agent, error) {
	var out Agent
	err := f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) (err error) {
		out, err = f.changeIn(tx, m, n, fn)
		return err
	})
	return out, err
}

// changeIn is change inside a transaction.
func (f *Fleet) changeIn(tx *audit.Tx, m *member, n note, fn func(tx *audit.Tx, a *Agent) error) (Agent, error) {
	a, err := load(tx, m.name)
	if err != nil {
		return Agent{}, err
	}
	if a == nil || f.member(m.tenant, m.name) != m {
		return Agent{}, core.Missing("agent", m.name)
	}
	was := a.Status
	if err := fn(tx, a); errors.Is(err, errSame) {
		return *a, nil
	} else if err != nil {
		return *a, err
	}
	a.Status, a.Reason = m.status(a)
	err = f.save(tx, m, a, was, n)
	return *a, err
}
