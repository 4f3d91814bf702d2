// Package cad has the panes of CAD: its agents, their workspaces with what was
// built and what is in conflict, and workflows.
package cad

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// CAD is what the panes read of it; *cad.Controller has it.
type CAD interface {
	Agent(ctx context.Context, tenant, id string) (cad.Agent, error)
	Agents(ctx context.Context, tenant string, f core.Filter) (core.Page[cad.Agent], error)
	Metrics(ctx context.Context, tenant, id string) (cad.Metrics, error)
	Role(tenant, name string) (cad.RoleTemplate, error)
	Workspace(ctx context.Context, tenant, id string) (cad.Workspace, error)
	Workspaces(ctx context.Context, tenant string, f core.Filter) (core.Page[cad.Workspace], error)
	Entities(ctx context.Context, tenant, workspace string, f core.Filter) (core.Page[model.Entity], error)
	History(ctx context.Context, tenant, workspace string, f core.Filter) (core.Page[model.Entry], error)
	Conflicts(ctx context.Context, tenant, workspace string) ([]model.Conflict, error)
	// Surfaces computes: it may take a moment.
	Surfaces(ctx context.Context, tenant, workspace string, ids ...string) (all []cad.Surface, more int, err error)
	Workflow(ctx context.Context, tenant, id string) (cad.Workflow, error)
	Workflows(ctx context.Context, tenant string, f core.Filter) (core.Page[cad.Workflow], error)
}

// madeShown is how many of the entities that it made are listed.
const madeShown = 24

// wholeAgent is an agent with its figures and its role.
type wholeAgent struct {
	cad.Agent
	metrics cad.Metrics
	role    cad.RoleTemplate
}

// NewAgent makes the sheet of one CAD agent: what it does, how well, what it
// made and what went wrong.
func NewAgent(of CAD) *pane.Detail[wholeAgent] {
	return pane.NewDetail(pane.DetailSpec[wholeAgent]{
		Name: "cad-agent", Text: agentText, Live: true,
		Fetch: func(ctx context.Context, tenant, id string) (g wholeAgent, err error) {
			if g.Agent, err = of.Agent(ctx, tenant, id); err != nil {
				return g, err
			}
			if g.role, err = of.Role(tenant, g.Role); err != nil {
				return g, err
			}
			g.metrics, err = of.Metrics(ctx, tenant, id)
			return g, err
		},
		Item:  func(g *wholeAgent) pane.Item { return pane.CADAgentItem(&g.Agent) },
		Title: func(g *wholeAgent) string { return "CAD agent " + g.AgentID },
		State: func(_ *pane.Env, g *wholeAgent) pane.State { return pane.CADAgentState(&g.Agent) },
	})
}

func agentText(env pane.Env, g *wholeAgent, out *pane.Paras) {
	a, m := &g.Agent, &g.metrics
	out.Fields(&env, a, "does:operation,busy waits_for:approval_id,opens=approval,warn task:task_id,opens")
	out.Add("role", a.Role+": "+strings.Join(g.role.AllowedOperations, " "), screen.Text)
	out.Fields(&env, a, "acts_as_it:fleet_agent,opens=agent workspace:workspace_id,opens")
	out.Add("operations", fmt.Sprintf("%d: %d well, %d failed", a.OperationCount, a.SuccessCount, a.ErrorCount), screen.Text)
	if a.OperationCount > 0 {
		rate, role := rate(a.SuccessCount, a.OperationCount)
		out.Add("success", rate+", "+strings.ReplaceAll(string(m.Learning), "_", " "), role)
	}
	if a.RoleViolations > 0 {
		breaches, role := breaches(a)
		if a.ViolationsInRow >= cad.Stubborn {
			breaches = fmt.Sprintf("%d of its role, %d in a row: it keeps trying what it may not do", a.RoleViolations, a.ViolationsInRow)
		}
		out.Add("breaches", breaches, role)
	}
	out.Add("took", fmt.Sprintf("%.1f ms a time, p95 %.1f ms", m.MeanMS, m.P95MS), screen.Text)
	out.Fields(&env, a, "created:created_at,dim active:last_active,dim")
	if len(a.ErrorLog) > 0 {
		out.Head(fmt.Sprintf("errors, newest first (%d)", a.ErrorCount))
		for _, e := range slices.Backward(a.ErrorLog) {
			out.Exact("", e, screen.Bad)
		}
	}
	if n := len(a.CreatedEntities); n > 0 {
		out.Head(fmt.Sprintf("made (%d)", a.CreatedCount))
		out.Add("", strings.Join(a.CreatedEntities[max(0, n-madeShown):], " "), screen.Text)
	}
	if len(m.Operations) > 0 {
		out.Head("by operation")
		for _, o := range m.Operations {
			role := screen.Text
			if o.Errors > 0 {
				role = screen.Warn
			}
			out.Add("", fmt.Sprintf("%-26s %4d times, %d failed, %.1f ms", o.Method, o.Count, o.Errors, o.MeanMS), role)
		}
	}
}

// NewAgents makes the pane of CAD agents: who they are, what they do and how
// well, those that keep trying what their role forbids included.
func NewAgents(of CAD) *pane.Table[cad.Agent] {
	return pane.NewTable(pane.Spec[cad.Agent]{
		Name: "cad-agents", Title: "CAD agents", Empty: "no CAD agents: press : and type cad scenario run NAME",
		Face: face.For[cad.Agent](),
		Cells: map[string]pane.Cell[cad.Agent]{
			"STATUS": pane.StateCell(pane.CADAgentState),
			"OK": func(env *pane.Env, a *cad.Agent) (string, screen.Role) {
				if a.OperationCount == 0 {
					return "", screen.Dim
				}
				return rate(a.SuccessCount, a.OperationCount)
			},
			"VIOLATIONS": func(env *pane.Env, a *cad.Agent) (string, screen.Role) {
				if a.RoleViolations == 0 {
					return "", screen.Dim
				}
				return breaches(a)
			},
			"NOW": func(env *pane.Env, a *cad.Agent) (string, screen.Role) {
				if a.Operation == "" && a.Status == cad.Failing && len(a.ErrorLog) > 0 {
					return a.ErrorLog[len(a.ErrorLog)-1], screen.Bad
				}
				return a.Operation, screen.Busy
			},
		},
		Item: pane.CADAgentItem,
		// role:NAME narrows a page.
		Fetch: func(ctx context.Context, tenant string, f core.Filter) (core.Page[cad.Agent], error) {
			for _, role := range pane.FilterWord(&f, "role") {
				f.Kind = role
			}
			return of.Agents(ctx, tenant, f)
		},
	})
}

// rate is how much went well.
func rate(good, all int) (string, screen.Role) {
	role := screen.Good
	if good < all {
		role = screen.Warn
	}
	return fmt.Sprintf("%.0f%%", 100*float64(good)/float64(all)), role
}

// breaches is how often the role was broken; an agent that goes on with it
// stands out.
func breaches(a *cad.Agent) (string, screen.Role) {
	if a.ViolationsInRow >= cad.Stubborn {
		return fmt.Sprintf("%d (%d!)", a.RoleViolations, a.ViolationsInRow), screen.Danger
	}
	return fmt.Sprint(a.RoleViolations), screen.Warn
}
