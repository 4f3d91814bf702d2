package cad

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"swarmdeck/engine/core"
)

// tenantState is what is in mind of one tenant; the store has all of it but what is
// under way.
type tenantState struct {
	slots *slots
	turns turns // on workspaces

	// Guarded by Controller.mu. The records are never modified.
	members map[string]*member
	spaces  map[string]*Workspace
	custom  map[string]*RoleTemplate
	set     settings
	// delegated are, by the agent of the fleet, the CAD agents whose tasks it does
	// now, once for each.
	delegated map[string][]string
}

// member is one agent: its newest committed record and what it does now.
type member struct {
	tenant, id string
	rec        atomic.Pointer[Agent]
	turn       chan struct{} // one slot: whose operation is under way
	now        atomic.Pointer[doing]
}

// doing is an operation under way.
type doing struct{ method, task string }

func newMember(a *Agent) *member {
	m := &member{tenant: a.TenantID, id: a.AgentID, turn: make(chan struct{}, 1)}
	m.rec.Store(a)
	return m
}

// shown is an agent's record as readers see it, with what it does now.
func (m *member) shown() *Agent {
	a, now := m.rec.Load(), m.now.Load()
	if now == nil || a.Status == Terminated {
		return a
	}
	c := *a
	c.Status, c.Operation, c.TaskID = Working, now.method, now.task
	return &c
}

// of is what is in mind of a tenant.
func (c *roster) of(name string) *tenantState { return c.change(name, func(*tenantState) {}) }

// change changes what is in mind of a tenant, which it returns.
func (c *roster) change(name string, do func(*tenantState)) *tenantState {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tenants[name]
	if t == nil {
		t = &tenantState{
			slots: &slots{most: defaultConcurrent}, turns: turns{held: map[string]bool{}}, set: settings{MaxConcurrent: defaultConcurrent},
			members: map[string]*member{}, spaces: map[string]*Workspace{}, custom: map[string]*RoleTemplate{}, delegated: map[string][]string{},
		}
		c.tenants[name] = t
	}
	do(t)
	return t
}

// look looks at what is in mind of a tenant, if there is anything.
func (c *roster) look(name string, at func(*tenantState)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if t := c.tenants[name]; t != nil {
		at(t)
	}
}

// elsewhere reports whether a tenant other than the named one has something.
func (c *roster) elsewhere(name string, has func(*tenantState) bool) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for other, t := range c.tenants {
		if other != name && has(t) {
			return true
		}
	}
	return false
}

// recall reads a tenant's records.
func (c *roster) recall(ctx context.Context, name string) error {
	k := &c.kinds
	err := errors.Join(k.settings.Read(ctx, name), k.agent.Read(ctx, name), k.workspace.Read(ctx, name), k.role.Read(ctx, name))
	if c.opt.ReadOnly {
		return err
	}
	for _, m := range c.members(name) { // whoever asked has died with its engine
		err = errors.Join(err, c.waitsNoMore(ctx, core.Self(name, "cad"), m, "the engine ended while it was asked about"))
	}
	return err
}

// member finds an agent of the caller's tenant.
func (c *roster) member(ctx context.Context, by core.Caller, id string) (*member, error) {
	var m *member
	c.look(by.Tenant, func(t *tenantState) { m = t.members[id] })
	if m != nil {
		return m, nil
	}
	if c.Parties().Elsewhere(by.Tenant, id) {
		return nil, c.foreign(ctx, by, id, fmt.Errorf("agent %s: %w", id, core.ErrForeign))
	}
	return nil, core.Missing("agent_id", id)
}

// space finds a workspace of the caller's tenant. One that only another tenant
// has is refused as foreign.
func (c *modelling) space(ctx context.Context, by core.Caller, id string) (*Workspace, error) {
	found, err := c.ownSpace(by.Tenant, id)
	if found != nil || id == Main {
		return found, err
	}
	if c.elsewhere(by.Tenant, func(t *tenantState) bool { return t.spaces[id] != nil }) {
		return nil, c.foreign(ctx, by, id, fmt.Errorf("workspace %s: %w", id, core.ErrForeign))
	}
	return nil, err
}

// ownSpace finds a workspace of a tenant.
func (c *modelling) ownSpace(name, id string) (w *Workspace, err error) {
	if c.look(name, func(t *tenantState) { w = t.spaces[id] }); w == nil {
		err = core.Missing("workspace_id", id)
	}
	return w, err
}

// Parties are the CAD agents that are not terminated, as the bus knows them.
// Its methods may be called inside transactions.
type Parties struct{ c *roster }

// Parties are the CAD agents as senders and recipients of messages.
func (c *roster) Parties() Parties { return Parties{c} }

// Known reports whether an id is that of a CAD agent that is not terminated.
func (p Parties) Known(name, id string) (known bool) {
	p.c.look(name, func(t *tenantState) { known = t.members[id] != nil && t.members[id].rec.Load().Status != Terminated })
	return known
}

// All are the ids of the CAD agents that are not terminated.
func (p Parties) All(tenant string) []string {
	return namesOf(p.c.Live(tenant), func(a *Agent) string { return a.AgentID })
}

// Elsewhere reports whether an id is that of another tenant's CAD agent.
func (p Parties) Elsewhere(name, id string) bool {
	return p.c.elsewhere(name, func(t *tenantState) bool { return t.members[id] != nil })
}

// Live are a tenant's agents that are not terminated, by id. The records are
// shared: they must not be modified.
func (c *roster) Live(tenant string) []*Agent {
	return core.Where(core.Map(c.members(tenant), (*member).shown), func(a *Agent) bool { return a.Status != Terminated })
}

// members are a tenant's agents by id.
func (c *roster) members(name string) (all []*member) {
	c.look(name, func(t *tenantState) { all = core.Sorted(t.members) })
	return all
}

// slots bounds how many agents of a tenant carry something out at once.
type slots struct {
	core.Condition
	most, taken int
}

func (s *slots) resize(most int) { s.Change(func() { s.most = most }) }

func (s *slots) take(ctx context.Context) error {
	return s.Until(ctx, func() bool {
		free := s.taken < s.most
		if free {
			s.taken++
		}
		return free
	})
}

func (s *slots) give() { s.Change(func() { s.taken-- }) }

// turns lets one operation at a time have a workspace.
type turns struct {
	core.Condition
	held map[string]bool
}

// take waits for all the workspaces, whose names are sorted and different.
func (t *turns) take(ctx context.Context, names []string) (give func(), err error) {
	taken := 0
	give = func() {
		t.Change(func() {
			for _, name := range names[:taken] {
				delete(t.held, name)
			}
		})
	}
	for _, name := range names {
		if err := t.Until(ctx, func() bool {
			free := !t.held[name]
			t.held[name] = true
			return free
		}); err != nil {
			give()
			return nil, err
		}
		taken++
	}
	return give, nil
}
