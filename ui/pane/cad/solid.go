package cad

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/solid"
)

const solidName = "solid"

// Solid shows the solids of a workspace, or one of them: its item's ID is
// WORKSPACE or WORKSPACE/SOLID.
type Solid struct {
	cad    CAD
	it     pane.Item
	reader pane.Reader[seen]
	got    *seen
	err    error
	find   string

	look solid.Look
	best bool // the mode is the best for the screen
	view solid.View
	w, h int
}

// seen is what was read of a workspace.
type seen struct {
	seq   int // of the workspace
	scene *solid.Scene
	facts map[string]solid.Facts
	more  int
	same  bool // as before: only seq counts
}

// NewSolid makes the sheet that shows the solids of a workspace from any side,
// with their measures beside.
func NewSolid(of CAD) *Solid { return solidWithin(of, solidName) }

// solidWithin makes one that another pane shows a part of itself by: what it reads
// comes back to that.
func solidWithin(of CAD, name string) *Solid {
	p := &Solid{cad: of, reader: pane.NewReader[seen](name)}
	p.front("iso")
	p.best = true
	return p
}

func (p *Solid) front(name string) {
	p.look.Camera, _ = solid.ViewOf(name)
	p.look.Four = false
}

func (p *Solid) Name() string { return solidName }

func (p *Solid) Kind() pane.Kind { return pane.Sheet }

func (p *Solid) Title(env pane.Env) string {
	p.suit(env)
	view := p.look.Camera.Name()
	if p.look.Four {
		view = "four views"
	}
	parts := []string{"solids of " + p.it.ID, view}
	if z := p.look.Camera.Zoom; z != 1 {
		parts = append(parts, fmt.Sprintf("%.3gx", z))
	}
	return strings.Join(append(parts, p.look.Mode.String()), "  ")
}

// suit fits the look to the screen.
func (p *Solid) suit(env pane.Env) {
	if p.look.Tints = env.Tints; p.best {
		p.look.Mode = solid.Best(env.Tints)
	}
}

// Show implements pane.Pane: another workspace is seen from where the last one
// was.
func (p *Solid) Show(_ pane.Env, it pane.Item) tea.Cmd {
	if it.Kind != p.it.Kind || it.ID != p.it.ID {
		p.got, p.err, p.find, p.look.Part = nil, nil, "", 0
	}
	if it.Workspace == "" {
		it.Workspace, it.Part, _ = strings.Cut(it.ID, "/")
	}
	p.it = it
	return nil
}

// Refresh implements pane.Pane. Only a workspace that has changed is looked at
// again.
func (p *Solid) Refresh(env pane.Env) tea.Cmd {
	of, tenant, space, one, known := p.cad, env.Tenant, p.it.Workspace, p.it.Part, -1
	if p.got != nil {
		known = p.got.seq
	}
	return p.reader.Read(p.it.ID, func(ctx context.Context) (seen, error) {
		w, err := of.Workspace(ctx, tenant, space)
		if err != nil || w.Seq == known {
			return seen{seq: w.Seq, same: true}, err
		}
		return readSolids(ctx, of, tenant, space, one, w.Seq)
	})
}

func readSolids(ctx context.Context, of CAD, tenant, space, one string, seq int) (seen, error) {
	var ids []string
	if one != "" {
		ids = []string{one}
	}
	surfaces, more, err := of.Surfaces(ctx, tenant, space, ids...)
	if err != nil {
		return seen{}, err
	}
	got := seen{seq: seq, scene: solid.OfSurfaces(surfaces), facts: map[string]solid.Facts{}, more: more}
	for page := 1; ; page++ {
		found, err := of.Entities(ctx, tenant, space, core.Filter{Kind: string(model.Solid), Page: page, Size: core.MaxPageSize})
		if err != nil {
			return seen{}, err
		}
		for _, e := range found.Items {
			if slices.ContainsFunc(surfaces, func(s cad.Surface) bool { return s.EntityID == e.ID }) {
				if got.facts[e.ID], err = solid.ReadFacts(e.Properties); err != nil {
					return seen{}, err
				}
			}
		}
		if !found.Info.Next {
			return got, nil
		}
	}
}

func (p *Solid) Update(env pane.Env, body any) tea.Cmd {
	a, ok := p.reader.Take(p.it.ID, body)
	if !ok {
		return nil
	}
	if p.err = a.Err; a.Err == nil && (!a.Got.same || p.got == nil) {
		p.got = &a.Got
		p.look.Part = min(p.look.Part, len(p.got.scene.Parts()))
	}
	if a.Again {
		return p.Refresh(env)
	}
	return nil
}

func (p *Solid) Resize(w, h int) { p.w, p.h = w, h }

// Selected implements pane.Pane: the solid that stands out, else the workspace.
func (p *Solid) Selected(pane.Env) pane.Item {
	it := p.it
	if part, ok := p.part(); ok {
		it.Part = part.Name
	}
	return it
}

// part is the one that stands out.
func (p *Solid) part() (solid.Part, bool) {
	if p.got == nil || p.got.scene == nil || p.look.Part < 1 || p.look.Part > len(p.got.scene.Parts()) {
		return solid.Part{}, false
	}
	return p.got.scene.Parts()[p.look.Part-1], true
}

func (p *Solid) Marks() []pane.Item { return nil }

func (p *Solid) ClearMarks() {}

// Filter implements pane.Pane: it brings the first solid out of which the name
// holds the text.
func (p *Solid) Filter(_ pane.Env, text string) (tea.Cmd, error) {
	p.find, p.look.Part = text, 0
	if p.got == nil || p.got.scene == nil || text == "" {
		return nil, nil
	}
	p.look.Part = 1 + slices.IndexFunc(p.got.scene.Parts(), func(s solid.Part) bool { return strings.Contains(strings.ToLower(s.Name), strings.ToLower(text)) })
	return nil, nil
}

func (p *Solid) FilterText() string { return p.find }

func (p *Solid) Reset() { p.it, p.got, p.err, p.find = pane.Item{}, nil, nil, "" }

// Steps of the keys.
const (
	turnStep = 10.0 // degrees
	panStep  = 0.08 // of the picture
	zoomStep = 1.25
)

func (p *Solid) Do(_ pane.Env, action string) (tea.Cmd, bool) {
	c := &p.look.Camera
	turn := map[string][3]float64{
		"left": {-turnStep}, "right": {turnStep}, "up": {0, turnStep}, "down": {0, -turnStep}, "roll-left": {0, 0, -turnStep}, "roll-right": {0, 0, turnStep},
	}
	pan := map[string][2]float64{"pan-left": {-panStep}, "pan-right": {panStep}, "pan-up": {0, panStep}, "pan-down": {0, -panStep}}
	if by, ok := turn[action]; ok {
		c.Turn(by[0], by[1], by[2])
		p.look.Four = false
		return nil, true
	}
	if by, ok := pan[action]; ok {
		c.PanX, c.PanY = c.PanX+by[0], c.PanY+by[1]
		return nil, true
	}
	switch action {
	case "zoom-in":
		c.Zoom = min(c.Zoom*zoomStep, 100)
	case "zoom-out":
		c.Zoom = max(c.Zoom/zoomStep, 0.1)
	case "view-front", "view-top", "view-right", "view-iso":
		p.front(strings.TrimPrefix(action, "view-"))
	case "top":
		p.front("iso")
		p.look.Part, p.best = 0, true
	case "view-four":
		p.look.Four = !p.look.Four
	case "mode":
		p.look.Mode, p.best = (p.look.Mode+1)%solid.Modes, false
	case "next-part":
		if p.got != nil && p.got.scene != nil {
			p.look.Part = (p.look.Part + 1) % (len(p.got.scene.Parts()) + 1)
		}
	default:
		return nil, false
	}
	return nil, true
}
