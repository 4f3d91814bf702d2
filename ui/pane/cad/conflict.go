package cad

import (
	"cmp"
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/solid"
)

const conflictName = "conflict"

// Conflict shows one conflict. Its item is that of the conflicts pane.
type Conflict struct {
	*pane.Detail[wholeConflict]
	look solid.Look
	view solid.View
	w, h int
}

// wholeConflict is a conflict with what it is about. A side that was deleted is nil.
type wholeConflict struct {
	model.Conflict
	gone           bool // it is decided
	source, target *model.Entity
	scene          *solid.Scene // nil without solids
	seqs           [2]int
}

// NewConflict makes the sheet of one conflict of a merge: the two sides next to
// each other, what differs between them as a picture, and the keys that decide.
func NewConflict(of CAD) *Conflict {
	p := &Conflict{}
	p.look.Camera, _ = solid.ViewOf("iso")
	p.Detail = pane.NewDetail(pane.DetailSpec[wholeConflict]{
		Name: conflictName, Live: true, Text: p.text,
		Reread: func(ctx context.Context, tenant, id string, was *wholeConflict) (wholeConflict, error) {
			return readConflict(ctx, of, tenant, id, was)
		},
		Item: func(g *wholeConflict) pane.Item {
			if g.gone {
				return p.Record.Item()
			}
			return conflictItem(&g.Conflict)
		},
	})
	return p
}

func (p *Conflict) Title(env pane.Env) string {
	it := p.Selected(env)
	if it.Part == "" {
		return "conflict"
	}
	return "conflict about " + it.Part + ", from " + it.Source + " into " + it.Workspace
}

// readConflict finds a conflict by its id; nothing is read again while both workspaces
// are as they were.
func readConflict(ctx context.Context, of CAD, tenant, id string, was *wholeConflict) (g wholeConflict, err error) {
	words := strings.SplitN(id, "/", 4)
	if len(words) != 4 {
		return g, core.Missing("conflict", id)
	}
	for i, space := range words[:2] {
		s, err := of.Workspace(ctx, tenant, space)
		if err != nil {
			return g, err
		}
		g.seqs[i] = s.Seq
	}
	if was != nil && g.seqs == was.seqs {
		return *was, nil
	}
	open, err := of.Conflicts(ctx, tenant, words[0])
	if err != nil {
		return g, err
	}
	g.gone = true
	for i := range open {
		if conflictID(&open[i]) == id {
			g.Conflict, g.gone = open[i], false
		}
	}
	if g.gone {
		return g, nil
	}
	c := &g.Conflict
	if g.source, err = side(ctx, of, tenant, c.Source, c.EntityID); err != nil {
		return g, err
	}
	// The target's is the one that is overlapped, or that of the same id.
	if g.target, err = side(ctx, of, tenant, c.Target, cmp.Or(c.WithID, c.EntityID)); err != nil {
		return g, err
	}
	err = g.draw(ctx, of, tenant)
	return g, err
}

// side is one of the entities; nil when it is not there.
func side(ctx context.Context, of CAD, tenant, workspace, id string) (*model.Entity, error) {
	page, err := of.Entities(ctx, tenant, workspace, core.Filter{Match: id, Size: core.MaxPageSize})
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		if page.Items[i].ID == id {
			return &page.Items[i], nil
		}
	}
	return nil, nil
}

// draw makes the picture of both sides, where they are solids.
func (g *wholeConflict) draw(ctx context.Context, of CAD, tenant string) error {
	var sides [2][]cad.Surface // target, source: before and after
	for i, e := range []*model.Entity{g.target, g.source} {
		if e == nil || e.Type != model.Solid {
			continue
		}
		space := g.Target
		if i == 1 {
			space = g.Source
		}
		all, _, err := of.Surfaces(ctx, tenant, space, e.ID)
		if err != nil {
			return err
		}
		sides[i] = all
	}
	if len(sides[0])+len(sides[1]) > 0 {
		g.scene = solid.Compare(sides[0], sides[1])
	}
	return nil
}

// Update implements pane.Pane: there may be a picture now.
func (p *Conflict) Update(env pane.Env, body any) tea.Cmd {
	cmd := p.Detail.Update(env, body)
	p.Resize(p.w, p.h)
	return cmd
}

// Do implements pane.Pane: the picture turns and zooms as everywhere, the text
// scrolls by its own keys.
func (p *Conflict) Do(env pane.Env, action string) (tea.Cmd, bool) {
	switch action {
	case "left", "right", "zoom-in", "zoom-out", "mode":
		return nil, steer(&p.look, action)
	}
	return p.Detail.Do(env, action)
}

func (p *Conflict) Resize(w, h int) {
	p.w, p.h = w, h
	p.Detail.Resize(w, p.textHeight())
}

// textHeight is how many rows the text has; the picture gets the rest.
func (p *Conflict) textHeight() int {
	if g, err := p.Got(); err != nil || g == nil || g.scene == nil {
		return p.h
	}
	return min(max(p.h/2, 8), p.h)
}

func (p *Conflict) Draw(c *screen.Canvas, env pane.Env, focused bool) {
	text, picture := c.Bounds().SplitTop(p.textHeight())
	p.Detail.Draw(c.Sub(text), env, focused)
	if text.H == c.H() || picture.H < 3 {
		return
	}
	g, _ := p.Got()
	head, picture := picture.SplitTop(1)
	c.HLine(head.X, head.Y, head.W, screen.Border)
	x := c.Text(1, head.Y, screen.Title, " what differs ")
	x = c.Text(x+1, head.Y, screen.Removed, "- target only ")
	x = c.Text(x, head.Y, screen.Added, "+ source only ")
	c.Text(x, head.Y, screen.Text, "unmarked: both ")
	p.look.Tints = env.Tints
	p.view.Draw(c, picture, g.scene, p.look)
}

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
