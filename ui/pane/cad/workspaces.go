package cad

import (
	"fmt"

	"swarmdeck/engine/cad"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// NewWorkspaces makes the pane of what CAD agents build in.
func NewWorkspaces(of CAD) *pane.Table[cad.Workspace] {
	return pane.NewTable(pane.Spec[cad.Workspace]{
		Name: "workspaces", Title: "workspaces", Empty: "no workspaces: press + to make one",
		Cols: []grid.Column{
			{Title: "WORKSPACE", Min: 12, Weight: 3, Key: true, Middle: true},
			{Title: "BASE", Min: 6, Weight: 1, Priority: 4, Middle: true},
			{Title: "AGENT", Min: 8, Weight: 2, Priority: 3, Middle: true},
			{Title: "SOLIDS", Min: 6, Right: true},
			{Title: "ENTITIES", Min: 8, Priority: 2, Right: true},
			{Title: "OPS", Min: 4, Priority: 2, Right: true},
			{Title: "CONFLICTS", Min: 9, Right: true},
			{Title: "KERNEL", Min: 8, Priority: 5},
			{Title: "CHANGED", Min: 7, Priority: 1, Right: true},
		},
		ID: func(w *cad.Workspace) string { return w.WorkspaceID }, Item: workspaceItem,
		Fetch: of.Workspaces,
		Row: func(env *pane.Env, w *cad.Workspace, set func(int, string, screen.Role)) {
			set(0, w.WorkspaceID, screen.Accent)
			set(1, w.Base, screen.Dim)
			set(2, w.AgentID, screen.Text)
			set(3, fmt.Sprint(w.SolidCount), screen.Text)
			set(4, fmt.Sprint(w.EntityCount), screen.Text)
			set(5, fmt.Sprint(w.Seq), screen.Dim)
			role := screen.Dim
			if w.Conflicts > 0 {
				role = screen.Warn
			}
			set(6, fmt.Sprint(w.Conflicts), role)
			set(7, w.Kernel, screen.Dim)
			set(8, pane.Age(env.Now, w.UpdatedAt.Time()), screen.Dim)
		},
	})
}

// workspaceItem is a workspace as a thing under the cursor.
func workspaceItem(w *cad.Workspace) pane.Item {
	return pane.Item{Kind: "workspace", ID: w.WorkspaceID, Agent: w.AgentID, Workspace: w.WorkspaceID}
}
