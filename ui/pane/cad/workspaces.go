package cad

import (
	"fmt"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/face"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// NewWorkspaces makes the pane of what CAD agents build in.
func NewWorkspaces(of CAD) *pane.Table[cad.Workspace] {
	return pane.NewTable(pane.Spec[cad.Workspace]{
		Name: "workspaces", Title: "workspaces", Empty: "no workspaces: press + to make one",
		Face: face.For[cad.Workspace](),
		Cells: map[string]pane.Cell[cad.Workspace]{
			"CONFLICTS": func(env *pane.Env, w *cad.Workspace) (string, screen.Role) {
				if w.Conflicts == 0 {
					return "", screen.Dim
				}
				return fmt.Sprint(w.Conflicts), screen.Warn
			},
		},
		Item:  workspaceItem,
		Fetch: of.Workspaces,
	})
}

// workspaceItem is a workspace as a thing under the cursor.
func workspaceItem(w *cad.Workspace) pane.Item {
	return pane.Item{Kind: "workspace", ID: w.WorkspaceID, Agent: w.AgentID, Workspace: w.WorkspaceID}
}
