// Package cadagent is the sheet of one CAD agent: what it does, how well, what
// it made and what went wrong.
package cadagent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/cad"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/cadagents"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "cad-agent"

// madeShown is how many of the entities that it made are listed.
const madeShown = 24

// Pane shows one CAD agent.
type Pane struct{ *pane.Detail[whole] }

// whole is an agent with its figures and its role.
type whole struct {
	cad.Agent
	metrics cad.Metrics
	role    cad.RoleTemplate
}

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewDetail(pane.DetailSpec[whole]{
		Name: Name, Fetch: fetch, Text: text, Live: true,
		Item: func(g *whole) pane.Item { return cadagents.Item(&g.Agent) },
		Title: func(env pane.Env, g *whole) string {
			return "CAD agent " + g.AgentID + " " + cadagents.State(&g.Agent).Label(env.Glyphs)
		},
	})}
}

// Picture implements pane.Viewer.
func (p *Pane) Picture(env pane.Env) pane.Item { return pane.PictureOf(p.Selected(env).Workspace, "") }

func fetch(w pane.World, ctx context.Context, tenant, id string) (g whole, err error) {
	if g.Agent, err = w.CADAgent(ctx, tenant, id); err != nil {
		return g, err
	}
	if g.role, err = w.CADRole(tenant, g.Role); err != nil {
		return g, err
	}
	g.metrics, err = w.CADMetrics(ctx, tenant, id)
	return g, err
}

func text(env pane.Env, g *whole, out *pane.Paras) {
	a, m := &g.Agent, &g.metrics
	st := cadagents.State(a)
	out.Add("state", st.Label(env.Glyphs), st.Role())
	out.Add("does", a.Operation, screen.Busy)
	out.Link("waits for", a.Waiting, screen.Warn, pane.Item{Kind: "approval", ID: a.Waiting, Approval: a.Waiting})
	out.Link("task", a.TaskID, screen.Accent, pane.Item{Kind: "task", ID: a.TaskID, Task: a.TaskID})
	out.Add("role", a.Role+": "+strings.Join(g.role.AllowedOperations, " "), screen.Text)
	out.Link("workspace", a.WorkspaceID, screen.Accent, pane.Item{Kind: "workspace", ID: a.WorkspaceID, Workspace: a.WorkspaceID})
	out.Add("operations", fmt.Sprintf("%d: %d well, %d failed", a.OperationCount, a.SuccessCount, a.ErrorCount), screen.Text)
	if a.OperationCount > 0 {
		rate, role := cadagents.Rate(a.SuccessCount, a.OperationCount)
		out.Add("success", rate+", "+strings.ReplaceAll(string(m.Learning), "_", " "), role)
	}
	if a.RoleViolations > 0 {
		breaches, role := cadagents.Breaches(a)
		if a.ViolationsInRow >= cad.Stubborn {
			breaches = fmt.Sprintf("%d of its role, %d in a row: it keeps trying what it may not do", a.RoleViolations, a.ViolationsInRow)
		}
		out.Add("breaches", breaches, role)
	}
	out.Add("took", fmt.Sprintf("%.1f ms a time, p95 %.1f ms", m.MeanMS, m.P95MS), screen.Text)
	out.Add("created", pane.When(env.Now, a.CreatedAt.Time()), screen.Dim)
	out.Add("active", pane.When(env.Now, a.LastActive.Time()), screen.Dim)
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
