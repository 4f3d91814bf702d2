package fleet

import (
	"context"
	"errors"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

const (
	countStatus = "agent.status" // begins the counters of agents by status

	attention record.Rows[string] = "agent.attention" // task id → why it asked for a person
)

func (f *Fleet) agentKind() record.Kind[Agent] {
	return record.Kind[Agent]{
		Noun: "agent", Bucket: "agent", Ledger: f.opt.Ledger, Follow: f.follow,
		ID: func(a *Agent) string { return a.Name },
		Head: func(a *Agent) record.Head {
			return record.Head{Tenant: &a.TenantID, Created: &a.CreatedAt, Updated: &a.UpdatedAt, Seq: &a.AuditSeq}
		},
		Stored:  func(a *Agent) any { return stored{a, a.Env} },
		State:   stateOf,
		Indexes: []record.Index[Agent]{{Count: countStatus, Word: func(a *Agent) string { return string(a.Status) }}},
	}
}

// stored is an agent as it is kept, with all of its environment.
type stored struct {
	*Agent
	Env map[string]string `json:"env,omitempty"`
}

// stateOf is what the audit log says about an agent.
func stateOf(a *Agent) any {
	s := struct {
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
	}{a.Status, a.Role, a.Project, a.Runtime, a.TaskID, a.Waiting, a.Paused, a.Pausing, a.Stopped, ""}
	if a.Stuck != nil {
		s.Stuck = a.Stuck.Kind
	}
	return s
}

func (f *Fleet) projectKind() record.Kind[Project] {
	return record.Kind[Project]{
		Noun: "project", Bucket: "project", Ledger: f.opt.Ledger,
		ID:    func(p *Project) string { return p.ID },
		Place: func(p *Project) record.Key { return record.Key(p.Name) },
		State: func(p *Project) any { return p },
	}
}

func (f *Fleet) roleKind() record.Kind[Role] {
	return record.Kind[Role]{
		Noun: "role", Bucket: "role", Ledger: f.opt.Ledger,
		ID:    func(r *Role) string { return r.ID },
		Place: func(r *Role) record.Key { return record.Text(r.ProjectName).Last(r.Name) },
		State: func(r *Role) any { return r },
	}
}

// auditables are the records that reconcile compares.
func (f *Fleet) auditables() []audit.Auditable {
	return []audit.Auditable{f.agents.Auditable(), f.projects.Auditable(), f.roles.Auditable()}
}

// keep keeps a project or role that is new or another; the id may have been made
// up before the server was known.
func keep[T comparable](tx *audit.Tx, k *record.Kind[T], v T) error {
	old, err := k.At(tx, k.Place(&v))
	if err != nil || old != nil && *old == v {
		return err
	}
	return k.Save(tx, record.Event{Type: k.Noun + ".learned"}, old, &v)
}

// add keeps one that is not there.
func add[T any](tx *audit.Tx, k *record.Kind[T], v T) error {
	old, err := k.At(tx, k.Place(&v))
	if err != nil || old != nil {
		return err
	}
	return k.Save(tx, record.Event{Type: k.Noun + ".created"}, nil, &v)
}

// errSame makes a change end without a write.
var errSame = errors.New("nothing changed")

// change applies fn to an agent's newest record, works out the status that
// follows, and saves it. fn may return errSame to leave everything as it is.
func (f *Fleet) change(ctx context.Context, by core.Caller, m *member, n record.Event, fn func(tx *audit.Tx, a *Agent) error) (Agent, error) {
	var out Agent
	err := f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) (err error) {
		out, err = f.changeIn(tx, m, n, fn)
		return err
	})
	return out, err
}

// changeIn is change inside a transaction.
func (f *Fleet) changeIn(tx *audit.Tx, m *member, n record.Event, fn func(tx *audit.Tx, a *Agent) error) (Agent, error) {
	old, err := f.agents.Load(tx, m.name)
	if err != nil {
		return Agent{}, err
	}
	if old == nil || f.member(m.tenant, m.name) != m {
		return Agent{}, core.Missing("agent", m.name)
	}
	a := *old
	if err := fn(tx, &a); errors.Is(err, errSame) {
		return a, nil
	} else if err != nil {
		return a, err
	}
	a.Status, a.Reason = m.status(&a)
	err = f.agents.Save(tx, n, old, &a)
	return a, err
}
