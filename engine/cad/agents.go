package cad

import (
	"cmp"
	"context"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// CreateAgent makes an agent (controller operation create_agent). Its workspace
// must be there, or be made along with it.
func (c *Controller) CreateAgent(ctx context.Context, by core.Caller, w CreateAgent) (Agent, error) {
	if err := checkAgentID("agent_id", w.AgentID); err != nil {
		return Agent{}, err
	}
	role, err := c.Role(by.Tenant, w.RoleName)
	if err != nil {
		return Agent{}, err
	}
	if c.opt.Taken != nil && c.opt.Taken(by.Tenant, w.AgentID) {
		return Agent{}, taken("agent_id", w.AgentID, "another agent or subagent has this name")
	}
	begun, err := c.spaceFor(ctx, by, w)
	if err != nil {
		return Agent{}, err
	}
	var made Agent
	err = c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if was, err := c.kinds.agent.Load(tx, w.AgentID); err != nil {
			return err
		} else if was != nil {
			return taken("agent_id", w.AgentID, "there is an agent of this name, "+string(was.Status))
		}
		if begun != nil {
			if err := c.beginIn(tx, begun); err != nil {
				return err
			}
		}
		made = Agent{
			TenantID: by.Tenant, AgentID: w.AgentID, Role: role.Name, WorkspaceID: w.WorkspaceID, Status: Idle,
			CreatedEntities: []string{}, ErrorLog: []string{}, CreatedAt: seconds(tx.Now()), LastActive: seconds(tx.Now()), CreatedBy: by.Name,
		}
		return c.saveAgent(tx, &made, record.Event{Type: "cad.agent.created", Detail: map[string]string{"role": role.Name, "workspace_id": w.WorkspaceID}})
	})
	return made, explain("create agent "+w.AgentID, err)
}

func taken(field, value, why string) error {
	return core.Errorf(core.Conflict, "%s %s: %s", field, value, why).With("field", field).With("value", value)
}

// ShutdownAgent terminates an agent for good (controller operation
// shutdown_agent). An operation that is under way is not stored any more. What
// it made stays.
func (c *Controller) ShutdownAgent(ctx context.Context, by core.Caller, id string) (Agent, error) {
	if _, err := c.member(ctx, by, id); err != nil {
		return Agent{}, err
	}
	var out Agent
	err := c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		a, err := c.loadAgent(tx, id)
		if err != nil {
			return err
		}
		if err := a.to(Terminated); err != nil {
			return err
		}
		a.TerminatedAt, a.Waiting = seconds(tx.Now()), ""
		if err := c.voidIn(tx, id, "the agent was shut down"); err != nil {
			return err
		}
		out = *a
		return c.saveAgent(tx, &out, record.Event{Type: "cad.agent.terminated"})
	})
	return out, explain("shut agent "+id+" down", err)
}

// Agent returns one agent.
func (c *Controller) Agent(ctx context.Context, tenant, id string) (Agent, error) {
	m, err := c.member(ctx, reader(tenant), id)
	if err != nil {
		return Agent{}, err
	}
	return *m.shown(), nil
}

// Agents lists agents, newest first (controller operation list_agents). Status
// is one of Statuses, Kind a role, Agent an id; Since and Until are of its
// creation; Match looks into id, role, workspace and errors.
func (c *Controller) Agents(_ context.Context, tenant string, f core.Filter) (core.Page[Agent], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[Agent]{}, err
	}
	if f.Status != "" && !slices.Contains(Statuses(), Status(f.Status)) {
		return core.Page[Agent]{}, core.Invalid("status", f.Status, "idle, working, error, terminated")
	}
	var all []*Agent
	for _, m := range c.members(tenant) {
		if a := m.shown(); a.fits(f) {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b *Agent) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return pageOf(all, f), nil
}

func (a *Agent) fits(f core.Filter) bool {
	at := a.CreatedAt.Time()
	return core.Wants(f.Status, string(a.Status)) && core.Wants(f.Kind, a.Role) && core.Wants(f.Agent, a.AgentID) && core.Wants(f.Task, a.TaskID) &&
		f.Session == "" && f.Trace == "" && f.Within(at) &&
		f.Finds(append(slices.Clone(a.ErrorLog), a.AgentID, a.Role, a.WorkspaceID)...)
}

// pageOf cuts a page out of a whole list.
func pageOf[T any](all []*T, f core.Filter) core.Page[T] {
	from := min(f.Offset(), len(all))
	items := make([]T, 0, min(f.Size, len(all)-from))
	for _, v := range all[from:min(from+f.Size, len(all))] {
		items = append(items, *v)
	}
	return core.NewPage(items, f, len(all))
}
