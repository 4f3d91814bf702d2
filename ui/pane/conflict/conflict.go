// Package conflict is the sheet of one conflict of a merge: the two sides next
// to each other, what differs between them as a picture, and the keys that
// decide.
package conflict

import (
	"context"
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/conflicts"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/solid"
)

// Name is the pane's name and keymap scope.
const Name = "conflict"

// Pane shows one conflict. Its item is that of the conflicts pane.
type Pane struct {
	pane.Record
	reader pane.Reader[whole]
	got    *whole
	err    error
	look   solid.Look
	view   solid.View
	w, h   int
}

// whole is a conflict with what it is about. A side that was deleted is nil.
type whole struct {
	model.Conflict
	gone           bool // it is decided
	source, target *model.Entity
	scene          *solid.Scene // nil without solids
	seqs           [2]int
	same           bool
}

// New makes the pane.
func New() *Pane {
	p := &Pane{Record: pane.NewRecord(Name), reader: pane.NewReader[whole](Name)}
	p.look.Camera, _ = solid.ViewOf("iso")
	return p
}

// Show implements pane.Pane.
func (p *Pane) Show(_ pane.Env, it pane.Item) tea.Cmd {
	if p.Bind(it) {
		p.got, p.err = nil, nil
	}
	return nil
}

// Title implements pane.Pane.
func (p *Pane) Title(env pane.Env) string {
	it := p.Selected(env)
	if it.Part == "" {
		return "conflict"
	}
	return "conflict about " + it.Part + ", from " + it.Source + " into " + it.Workspace
}

// Reset implements pane.Pane.
func (p *Pane) Reset() {
	p.Record.Reset()
	p.got, p.err = nil, nil
}

// Selected implements pane.Pane.
func (p *Pane) Selected(env pane.Env) pane.Item {
	it := p.Record.Selected(env)
	if p.got != nil && !p.got.gone {
		row := it.Row
		it = conflicts.Item(&p.got.Conflict)
		it.Row = row
	}
	return it
}

// Picture implements pane.Viewer.
func (p *Pane) Picture(env pane.Env) pane.Item { return pane.PictureOf(p.Selected(env).Workspace, "") }

// Refresh implements pane.Pane.
func (p *Pane) Refresh(env pane.Env) tea.Cmd {
	world, tenant, id, seqs := env.World, env.Tenant, p.Record.Item().ID, [2]int{-1, -1}
	if p.got != nil {
		seqs = p.got.seqs
	}
	return p.reader.Read(id, func(ctx context.Context) (whole, error) { return read(ctx, world, tenant, id, seqs) })
}

// read finds a conflict by its id; nothing is read again while both workspaces
// are as they were.
func read(ctx context.Context, w pane.World, tenant, id string, known [2]int) (g whole, err error) {
	words := strings.SplitN(id, "/", 4)
	if len(words) != 4 {
		return g, core.Missing("conflict", id)
	}
	for i, space := range words[:2] {
		s, err := w.Workspace(ctx, tenant, space)
		if err != nil {
			return g, err
		}
		g.seqs[i] = s.Seq
	}
	if g.seqs == known {
		g.same = true
		return g, nil
	}
	open, err := w.Conflicts(ctx, tenant, words[0])
	if err != nil {
		return g, err
	}
	g.gone = true
	for i := range open {
		if conflicts.ID(&open[i]) == id {
			g.Conflict, g.gone = open[i], false
		}
	}
	if g.gone {
		return g, nil
	}
	c := &g.Conflict
	if g.source, err = side(ctx, w, tenant, c.Source, c.EntityID); err != nil {
		return g, err
	}
	if g.target, err = side(ctx, w, tenant, c.Target, other(c)); err != nil {
		return g, err
	}
	err = g.draw(ctx, w, tenant)
	return g, err
}

// other is the target's entity: that of the same id, or the one overlapped.
func other(c *model.Conflict) string {
	if c.WithID != "" {
		return c.WithID
	}
	return c.EntityID
}

// side is one of the entities; nil when it is not there.
func side(ctx context.Context, w pane.World, tenant, workspace, id string) (*model.Entity, error) {
	e, err := w.Entity(ctx, tenant, workspace, id)
	switch {
	case errors.Is(err, core.Kind(core.NotFound)):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &e, nil
}

// draw makes the picture of both sides, where they are solids.
func (g *whole) draw(ctx context.Context, w pane.World, tenant string) error {
	var sides [2][]cad.Surface // target, source: before and after
	for i, e := range []*model.Entity{g.target, g.source} {
		if e == nil || e.Type != model.Solid {
			continue
		}
		space := g.Target
		if i == 1 {
			space = g.Source
		}
		all, _, err := w.Surfaces(ctx, tenant, space, e.ID)
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

// Update implements pane.Pane.
func (p *Pane) Update(env pane.Env, body any) tea.Cmd {
	a, ok := p.reader.Take(p.Record.Item().ID, body)
	if !ok {
		return nil
	}
	if p.err = a.Err; a.Err == nil && (!a.Got.same || p.got == nil) {
		p.got = &a.Got
	}
	p.lay(env)
	if a.Again {
		return p.Refresh(env)
	}
	return nil
}

// Do implements pane.Pane: the picture turns and zooms as everywhere, the text
// scrolls by its own keys.
func (p *Pane) Do(env pane.Env, action string) (tea.Cmd, bool) {
	c := &p.look.Camera
	switch action {
	case "left":
		c.Turn(-15, 0, 0)
	case "right":
		c.Turn(15, 0, 0)
	case "zoom-in":
		c.Zoom = min(c.Zoom*1.25, 100)
	case "zoom-out":
		c.Zoom = max(c.Zoom/1.25, 0.1)
	case "mode":
		p.look.Mode = (p.look.Mode + 1) % solid.Modes
	default:
		return p.Record.Do(env, action)
	}
	return nil, true
}

// Resize implements pane.Pane.
func (p *Pane) Resize(w, h int) {
	wider := w != p.w
	p.w, p.h = w, h
	if wider && p.got != nil && !p.got.gone && p.err == nil { // the table fills the width
		var out pane.Paras
		p.text(&out)
		p.Page.Set(out)
	}
	p.Page.Resize(w, p.textHeight())
}

// textHeight is how many rows the text has; the picture gets the rest.
func (p *Pane) textHeight() int {
	if p.got == nil || p.got.scene == nil {
		return p.h
	}
	return min(max(p.h/2, 8), p.h)
}

// Draw implements pane.Pane.
func (p *Pane) Draw(c *screen.Canvas, env pane.Env, focused bool) {
	text, picture := c.Bounds().SplitTop(p.textHeight())
	p.Page.Draw(c.Sub(text), focused)
	if p.got == nil || p.got.scene == nil || picture.H < 3 {
		return
	}
	head, picture := picture.SplitTop(1)
	c.HLine(head.X, head.Y, head.W, screen.Border)
	x := c.Text(1, head.Y, screen.Title, " what differs ")
	x = c.Text(x+1, head.Y, screen.Removed, "- target only ")
	x = c.Text(x, head.Y, screen.Added, "+ source only ")
	c.Text(x, head.Y, screen.Text, "unmarked: both ")
	p.look.Tints = env.Tints
	p.view.Draw(c, picture, p.got.scene, p.look)
}
