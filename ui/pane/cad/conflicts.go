package cad

import (
	"context"
	"strings"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// NewConflicts makes the pane of what merges of workspaces left undecided.
func NewConflicts(of CAD) *pane.Table[model.Conflict] {
	return pane.NewTable(pane.Spec[model.Conflict]{
		Name: "conflicts", Title: "conflicts", Empty: "no merge has left anything undecided",
		Face: face.For[model.Conflict](),
		Cells: map[string]pane.Cell[model.Conflict]{
			"CONFLICT": func(env *pane.Env, c *model.Conflict) (string, screen.Role) {
				return screen.Waiting.Glyph(env.Glyphs) + " " + conflictWhy(c), screen.Warn
			},
		},
		Item: conflictItem,
		Load: func(ctx context.Context, tenant string) ([]model.Conflict, error) {
			return readConflicts(ctx, of, tenant)
		},
	})
}

// conflictID tells conflicts apart: of one entity from one workspace into another there
// is one, and one more for each solid that it overlaps.
func conflictID(c *model.Conflict) string {
	return c.Target + "/" + c.Source + "/" + c.EntityID + "/" + c.WithID
}

// conflictItem is a conflict as a thing under the cursor.
func conflictItem(c *model.Conflict) pane.Item {
	return pane.Item{Kind: "conflict", ID: conflictID(c), Workspace: c.Target, Source: c.Source, Part: c.EntityID}
}

// conflictWhy is the kind of conflict in words.
func conflictWhy(c *model.Conflict) string { return strings.ReplaceAll(string(c.Type), "_", " ") }

// readConflicts gathers the conflicts of all workspaces that have some.
func readConflicts(ctx context.Context, of CAD, tenant string) (all []model.Conflict, err error) {
	for page := 1; ; page++ {
		spaces, err := of.Workspaces(ctx, tenant, core.Filter{Page: page, Size: core.MaxPageSize})
		if err != nil {
			return nil, err
		}
		for _, s := range spaces.Items {
			if s.Conflicts == 0 {
				continue
			}
			open, err := of.Conflicts(ctx, tenant, s.WorkspaceID)
			if err != nil {
				return nil, err
			}
			all = append(all, open...)
		}
		if !spaces.Info.Next {
			return all, nil
		}
	}
}
