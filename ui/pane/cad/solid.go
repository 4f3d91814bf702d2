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
	*pane.Detail[seen]
	look solid.Look
	best bool // the mode is the best for the screen
	view solid.View
}

// seen is what was read of a workspace.
type seen struct {
	seq   int // of the workspace
	scene *solid.Scene
	facts map[string]model.Facts
	more  int
}

// NewSolid makes the sheet that shows the solids of a workspace from any side,
// with their measures beside.
func NewSolid(of CAD) *Solid { return solidWithin(of, solidName) }

// solidWithin makes one that another pane shows a part of itself by: what it reads
// comes back to that.
func solidWithin(of CAD, name string) *Solid {
	p := &Solid{}
	p.front("iso")
	p.best = true
	p.Detail = pane.NewDetail(pane.DetailSpec[seen]{
		Name: name, Live: true,
		Reread: func(ctx context.Context, tenant, id string, was *seen) (seen, error) {
			space, one, _ := strings.Cut(id, "/")
			w, err := of.Workspace(ctx, tenant, space)
			switch {
			case err != nil:
				return seen{}, err
			case was != nil && was.seq == w.Seq: // as it was
				return *was, nil
			}
			return readSolids(ctx, of, tenant, space, one, w.Seq)
		},
		Took: func(g *seen) { p.look.Part = min(p.look.Part, len(g.scene.Parts())) },
	})
	return p
}

func (p *Solid) front(name string) {
	p.look.Camera, _ = solid.ViewOf(name)
	p.look.Four = false
}

func (p *Solid) Title(env pane.Env) string {
	p.suit(env)
	view := p.look.Camera.Name()
	if p.look.Four {
		view = "four views"
	}
	parts := []string{"solids of " + p.Item().ID, view}
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
func (p *Solid) Show(env pane.Env, it pane.Item) tea.Cmd {
	if it.ID != p.Item().ID {
		p.look.Part = 0
	}
	if it.Workspace == "" {
		it.Workspace, it.Part, _ = strings.Cut(it.ID, "/")
	}
	return p.Detail.Show(env, it)
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
	got := seen{seq: seq, scene: solid.OfSurfaces(surfaces), facts: map[string]model.Facts{}, more: more}
	for page := 1; ; page++ {
		found, err := of.Entities(ctx, tenant, space, core.Filter{Kind: string(model.Solid), Page: page, Size: core.MaxPageSize})
		if err != nil {
			return seen{}, err
		}
		for _, e := range found.Items {
			if slices.ContainsFunc(surfaces, func(s cad.Surface) bool { return s.EntityID == e.ID }) {
				if got.facts[e.ID], err = model.FactsOf(e); err != nil {
					return seen{}, err
				}
			}
		}
		if !found.Info.Next {
			return got, nil
		}
	}
}

// Selected implements pane.Pane: the solid that stands out, else the workspace.
func (p *Solid) Selected(pane.Env) pane.Item {
	it := p.Item()
	if part, ok := p.part(); ok {
		it.Part = part.Name
	}
	return it
}

// parts are the solids that are drawn.
func (p *Solid) parts() []solid.Part {
	if g, _ := p.Got(); g != nil && g.scene != nil {
		return g.scene.Parts()
	}
	return nil
}

// part is the one that stands out.
func (p *Solid) part() (solid.Part, bool) {
	all := p.parts()
	if p.look.Part < 1 || p.look.Part > len(all) {
		return solid.Part{}, false
	}
	return all[p.look.Part-1], true
}

// Filter implements pane.Pane: it brings the first solid out of which the name
// holds the text.
func (p *Solid) Filter(env pane.Env, text string) (tea.Cmd, error) {
	if p.look.Part = 0; text != "" {
		p.look.Part = 1 + slices.IndexFunc(p.parts(), func(s solid.Part) bool { return strings.Contains(strings.ToLower(s.Name), strings.ToLower(text)) })
	}
	return p.Detail.Filter(env, text)
}

// Steps of the keys.
const (
	turnStep = 10.0 // degrees
	panStep  = 0.08 // of the picture
	zoomStep = 1.25
)

func (p *Solid) Do(_ pane.Env, action string) (tea.Cmd, bool) {
	switch action {
	case "view-front", "view-top", "view-right", "view-iso":
		p.front(strings.TrimPrefix(action, "view-"))
	case "top":
		p.front("iso")
		p.look.Part, p.best = 0, true
	case "view-four":
		p.look.Four = !p.look.Four
	case "next-part":
		p.look.Part = (p.look.Part + 1) % (len(p.parts()) + 1)
	default:
		if !steer(&p.look, action) {
			return nil, false
		}
		p.best = p.best && action != "mode"
	}
	return nil, true
}

// steer turns, shifts or zooms what is seen of solids, or draws it otherwise, by a named
// action; it reports whether it was one.
func steer(look *solid.Look, action string) bool {
	c := &look.Camera
	turn := map[string][3]float64{
		"left": {-turnStep}, "right": {turnStep}, "up": {0, turnStep}, "down": {0, -turnStep}, "roll-left": {0, 0, -turnStep}, "roll-right": {0, 0, turnStep},
	}
	pan := map[string][2]float64{"pan-left": {-panStep}, "pan-right": {panStep}, "pan-up": {0, panStep}, "pan-down": {0, -panStep}}
	if by, ok := turn[action]; ok {
		c.Turn(by[0], by[1], by[2])
		look.Four = false
		return true
	}
	if by, ok := pan[action]; ok {
		c.PanX, c.PanY = c.PanX+by[0], c.PanY+by[1]
		return true
	}
	switch action {
	case "zoom-in":
		c.Zoom = min(c.Zoom*zoomStep, 100)
	case "zoom-out":
		c.Zoom = max(c.Zoom/zoomStep, 0.1)
	case "mode":
		look.Mode = (look.Mode + 1) % solid.Modes
	default:
		return false
	}
	return true
}
