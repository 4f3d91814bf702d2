package cad

import (
	"context"
	"strings"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// NewConflicts makes the pane of what merges of workspaces left undecided.
func NewConflicts(of CAD) *pane.Table[model.Conflict] {
	return pane.NewTable(pane.Spec[model.Conflict]{
		Name: "conflicts", Title: "conflicts", Empty: "no merge has left anything undecided",
		Cols: []grid.Column{
			{Title: "WHY", Min: 18},
			{Title: "ENTITY", Min: 12, Weight: 2, Key: true, Middle: true},
			{Title: "WITH", Min: 8, Weight: 1, Priority: 3, Middle: true},
			{Title: "FROM", Min: 10, Weight: 2, Priority: 1, Middle: true},
			{Title: "INTO", Min: 10, Weight: 2, Middle: true},
			{Title: "WHAT", Min: 20, Weight: 4, Priority: 2},
		},
		ID: conflictID, Item: conflictItem,
		Fetch: func(ctx context.Context, tenant string, f core.Filter) (core.Page[model.Conflict], error) {
			return fetchConflicts(ctx, of, tenant, f)
		},
		Row: func(env *pane.Env, c *model.Conflict, set func(int, string, screen.Role)) {
			set(0, screen.Waiting.Glyph(env.Glyphs)+" "+conflictWhy(c), screen.Warn)
			set(1, c.EntityID, screen.Accent)
			set(2, c.WithID, screen.Text)
			set(3, c.Source, screen.Text)
			set(4, c.Target, screen.Text)
			set(5, c.Description, screen.Dim)
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

// fetchConflicts gathers the conflicts of all workspaces that have some.
func fetchConflicts(ctx context.Context, of CAD, tenant string, f core.Filter) (core.Page[model.Conflict], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[model.Conflict]{}, err
	}
	var all []model.Conflict
	for page := 1; ; page++ {
		spaces, err := of.Workspaces(ctx, tenant, core.Filter{Page: page, Size: core.MaxPageSize})
		if err != nil {
			return core.Page[model.Conflict]{}, err
		}
		for _, s := range spaces.Items {
			if s.Conflicts == 0 {
				continue
			}
			open, err := of.Conflicts(ctx, tenant, s.WorkspaceID)
			if err != nil {
				return core.Page[model.Conflict]{}, err
			}
			for _, c := range open {
				if strings.Contains(strings.ToLower(conflictID(&c)+" "+conflictWhy(&c)), strings.ToLower(f.Match)) {
					all = append(all, c)
				}
			}
		}
		if !spaces.Info.Next {
			break
		}
	}
	from := min(f.Offset(), len(all))
	return core.NewPage(all[from:min(from+f.Size, len(all))], f, len(all)), nil
}
