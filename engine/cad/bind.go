package cad

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// An agent of the fleet acts as the CAD agent that an operator has bound it to,
// and as those whose tasks it was given to do, while it does them. Its name is
// its token's, whatever it says.

// BindAgent has an agent of the fleet act as a CAD agent from now on, as no other;
// "" frees the CAD agent. Whoever calls has checked that there is such an agent.
func (c *roster) BindAgent(ctx context.Context, by core.Caller, id, fleet string) (Agent, error) {
	if by.Kind == core.Agent {
		return Agent{}, core.Errorf(core.Denied, "only a person binds an agent of the fleet to a CAD agent").With("field", "agent_id")
	}
	if _, err := c.member(ctx, by, id); err != nil {
		return Agent{}, err
	}
	var out Agent
	err := c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		a, err := c.kinds.agent.Need(tx, id)
		if err != nil {
			return err
		}
		event := record.Event{Type: "cad.agent.bound", Detail: map[string]string{"fleet_agent": fleet}}
		switch bound := c.bound(by.Tenant, fleet); {
		case a.Status == Terminated:
			return terminated(id)
		case fleet == "" && a.FleetAgent == "":
			return core.Errorf(core.Conflict, "agent %s is bound to no agent of the fleet", id).With("field", "agent_id").With("value", id)
		case fleet == "":
			event = record.Event{Type: "cad.agent.unbound", Detail: map[string]string{"fleet_agent": a.FleetAgent}}
		case bound != "":
			return core.Errorf(core.Conflict, "agent %s of the fleet acts as CAD agent %s; cad agent bind %[2]s --free frees it", fleet, bound).With("field", "fleet").With("value", fleet)
		case a.FleetAgent != "":
			return core.Errorf(core.Conflict, "agent %s of the fleet acts as CAD agent %s; cad agent bind %[2]s --free frees it", a.FleetAgent, id).With("field", "agent_id").With("value", id)
		}
		a.FleetAgent = fleet
		out = *a
		return c.kinds.agent.Keep(tx, event, &out)
	})
	return out, audit.Explain("bind agent "+id, err)
}

// Left frees the CAD agent of an agent of the fleet that is deleted: another of its
// name is another.
func (c *roster) Left(tx *audit.Tx, fleet string) error {
	id := c.bound(tx.Tenant(), fleet)
	if id == "" {
		return nil
	}
	a, err := c.kinds.agent.Need(tx, id)
	if err != nil {
		return err
	}
	a.FleetAgent = ""
	return c.kinds.agent.Keep(tx, record.Event{Type: "cad.agent.unbound", Detail: map[string]string{"fleet_agent": fleet}}, a)
}

// bound is the CAD agent that an agent of the fleet is bound to, "" for none.
func (c *roster) bound(tenant, fleet string) (id string) {
	c.look(tenant, func(t *tenantState) {
		for _, m := range t.members {
			if a := m.rec.Load(); fleet != "" && a.FleetAgent == fleet && a.Status != Terminated {
				id = a.AgentID
			}
		}
	})
	return id
}

// actsAs are the CAD agents that an agent of the fleet may act as.
func (c *roster) actsAs(tenant, fleet string) (all []string) {
	if id := c.bound(tenant, fleet); id != "" {
		all = append(all, id)
	}
	c.look(tenant, func(t *tenantState) {
		for _, id := range t.delegated[fleet] {
			if !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
	})
	return all
}

// Acting is the CAD agent in whose name a caller acts: a person in that of any
// that they name, an agent of the fleet in that of its own, named or not. To act
// as another is refused and audited.
func (c *roster) Acting(ctx context.Context, by core.Caller, named, method string) (string, error) {
	if by.Kind != core.Agent {
		if named == "" {
			return "", core.Invalid("agent_id", "", "the CAD agent that carries it out")
		}
		return named, nil
	}
	if named != "" {
		if _, err := c.member(ctx, by, named); err != nil {
			return "", err
		}
	}
	may := c.actsAs(by.Tenant, by.Name)
	switch {
	case named == "" && len(may) == 1:
		return may[0], nil
	case slices.Contains(may, named):
		return named, nil
	}
	refused := &OpError{
		Class: RoleViolation, Name: string(RoleViolation), Field: "agent_id",
		Message:    fmt.Sprintf("agent %s of the fleet acts as CAD agent %s alone", by.Name, strings.Join(may, " or ")),
		Suggestion: "leave agent_id out, or have an operator bind it anew: cad agent bind",
	}
	detail := map[string]any{"fleet_agent": by.Name, "may": may, "method": core.ClipTo(method, 100)}
	if named != "" {
		refused.Value = core.MustEncode(named)
	}
	switch {
	case len(may) == 0:
		refused.Message = fmt.Sprintf("agent %s of the fleet is bound to no CAD agent", by.Name)
		refused.Suggestion = "an operator binds it: cad agent bind ID --fleet " + by.Name
	case named == "":
		refused.Suggestion = "name one of them in agent_id"
	}
	subject := named
	if subject == "" {
		subject = by.Name
	}
	return "", c.ledger.Refuse(ctx, by, audit.Entry{Type: "cad.agent.refused", Subject: "cad.agent", ID: subject, Detail: detail}, refused)
}

// delegate has an agent of the fleet act as a CAD agent until end.
func (c *roster) delegate(tenant, fleet, id string) (end func()) {
	c.change(tenant, func(t *tenantState) { t.delegated[fleet] = append(slices.Clip(t.delegated[fleet]), id) })
	return func() {
		c.change(tenant, func(t *tenantState) {
			left := slices.Clone(t.delegated[fleet])
			if i := slices.Index(left, id); i >= 0 {
				left = slices.Delete(left, i, i+1)
			}
			if t.delegated[fleet] = left; len(left) == 0 {
				delete(t.delegated, fleet)
			}
		})
	}
}
