// Package cadagents is the pane of CAD agents: who they are, what they do and
// how well, those that keep trying what their role forbids included.
package cadagents

import (
	"context"
	"fmt"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "cad-agents"

// Pane lists CAD agents.
type Pane struct{ *pane.Table[cad.Agent] }

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewTable(pane.Spec[cad.Agent]{
		Name: Name, Title: "CAD agents", Empty: "no CAD agents: press : and type cad scenario run NAME",
		Cols: []grid.Column{
			{Title: "STATE", Min: 11},
			{Title: "AGENT", Min: 12, Weight: 2, Key: true, Middle: true},
			{Title: "ROLE", Min: 9, Weight: 1},
			{Title: "WORKSPACE", Min: 10, Weight: 2, Priority: 2, Middle: true},
			{Title: "OPS", Min: 4, Priority: 3, Right: true},
			{Title: "OK", Min: 5, Priority: 1, Right: true},
			{Title: "BREACHES", Min: 8, Priority: 1, Right: true},
			{Title: "ACTIVE", Min: 6, Priority: 4, Right: true},
			{Title: "NOW", Min: 14, Weight: 3, Priority: 5},
		},
		ID: func(a *cad.Agent) string { return a.AgentID }, Row: row, Item: Item,
		Fetch: fetch,
	})}
}

// fetch reads a page; role:NAME narrows it.
func fetch(w pane.World, ctx context.Context, tenant string, f core.Filter) (core.Page[cad.Agent], error) {
	for _, role := range pane.FilterWord(&f, "role") {
		f.Kind = role
	}
	return w.CADAgents(ctx, tenant, f)
}

// Item is a CAD agent as a thing under the cursor.
func Item(a *cad.Agent) pane.Item {
	return pane.Item{Kind: "cad-agent", ID: a.AgentID, Agent: a.AgentID, Task: a.TaskID, Approval: a.Waiting, Workspace: a.WorkspaceID}
}

// Picture implements pane.Viewer.
func (p *Pane) Picture(env pane.Env) pane.Item { return pane.PictureOf(p.Selected(env).Workspace, "") }

// State is how an agent is.
func State(a *cad.Agent) pane.State {
	word := a.Shown()
	if word == "waiting for you" {
		return pane.State{State: screen.Waiting, Word: "needs you"}
	}
	return pane.State{State: screen.StateOf(word), Word: word}
}

func row(env *pane.Env, a *cad.Agent, set func(int, string, screen.Role)) {
	st := State(a)
	set(0, st.Label(env.Glyphs), st.Role())
	set(1, a.AgentID, screen.Accent)
	set(2, a.Role, screen.Text)
	set(3, a.WorkspaceID, screen.Text)
	set(4, fmt.Sprint(a.OperationCount), screen.Text)
	if a.OperationCount > 0 {
		text, role := Rate(a.SuccessCount, a.OperationCount)
		set(5, text, role)
	}
	if a.RoleViolations > 0 {
		text, role := Breaches(a)
		set(6, text, role)
	}
	set(7, pane.Age(env.Now, a.LastActive.Time()), screen.Dim)
	switch {
	case a.Operation != "":
		set(8, a.Operation, screen.Busy)
	case a.Status == cad.Failing && len(a.ErrorLog) > 0:
		set(8, a.ErrorLog[len(a.ErrorLog)-1], screen.Bad)
	}
}

// Rate is how much went well.
func Rate(good, all int) (string, screen.Role) {
	role := screen.Good
	if good < all {
		role = screen.Warn
	}
	return fmt.Sprintf("%.0f%%", 100*float64(good)/float64(all)), role
}

// Breaches is how often the role was broken; an agent that goes on with it
// stands out.
func Breaches(a *cad.Agent) (string, screen.Role) {
	if a.ViolationsInRow >= cad.Stubborn {
		return fmt.Sprintf("%d (%d!)", a.RoleViolations, a.ViolationsInRow), screen.Danger
	}
	return fmt.Sprint(a.RoleViolations), screen.Warn
}
