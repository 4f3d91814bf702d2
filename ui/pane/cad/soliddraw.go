package cad

import (
	"fmt"

	"swarmdeck/engine/cad/model"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/solid"
)

// grams is the mass of a solid as dense as water, which is its volume in cm³.
func grams(f model.Facts) string { return solid.Number(f.Volume / 1000) }

// The measures stand beside the picture from this width on, else below it.
const (
	besideW = 100
	factsW  = 34
)

func (p *Solid) Draw(c *screen.Canvas, env pane.Env, _ bool) {
	r := c.Bounds()
	got, err := p.Got()
	switch {
	case err != nil:
		c.TextIn(0, 0, r.W, screen.Bad, err.Error())
		return
	case got == nil || got.scene == nil:
		c.TextIn(0, 0, r.W, screen.Dim, "looking at "+p.Item().ID+" "+string(env.Glyphs.More))
		return
	case got.scene.Empty():
		c.TextIn(0, 0, r.W, screen.Dim, "no solid in "+p.Item().ID)
		return
	}
	p.suit(env)
	picture, facts := r, screen.Rect{}
	parts := len(got.scene.Parts())
	if r.W >= besideW {
		picture, facts = r.SplitLeft(r.W - factsW)
		c.VLine(facts.X, 0, r.H, screen.Border)
		facts.X, facts.W = facts.X+2, facts.W-2
	} else {
		picture, facts = r.SplitBottom(min(1+min(parts, 4), r.H/3))
	}
	p.view.Draw(c, picture, got.scene, p.look)
	if r.W < besideW {
		p.lines(c, facts, got)
	} else {
		p.column(c, facts, env, got)
	}
}

// said are the notes on what is not drawn.
func (p *Solid) said(of *seen) string {
	text := ""
	for _, s := range []string{of.scene.Note(), p.view.Note()} {
		if s != "" {
			text += "; " + s
		}
	}
	if of.more > 0 {
		text += fmt.Sprintf("; %d more solids are not drawn", of.more)
	}
	return text
}

// lines are the measures below the picture, a line a solid.
func (p *Solid) lines(c *screen.Canvas, r screen.Rect, of *seen) {
	if r.Empty() {
		return
	}
	box := of.scene.Box()
	head := fmt.Sprintf("all %s, a cell is %s mm wide%s", solid.Extent(box.Size()), solid.Short(p.view.Scale()), p.said(of))
	c.TextIn(r.X, r.Y, r.W, screen.Title, head)
	parts := of.scene.Parts()
	first := max(0, min(p.look.Part-1, len(parts)-(r.H-1)))
	for i := first; i < len(parts) && i-first < r.H-1; i++ {
		f := of.facts[parts[i].Name]
		text := fmt.Sprintf("%c %s  %s  %s mm3  %s g  %d faces  tol %s  ", solid.Sign(i+1), parts[i].Name, solid.Extent(f.Bounds.Size()), solid.Number(f.Volume),
			grams(f), f.Topology.Faces, solid.Short(f.Tolerance))
		valid := "valid"
		if !f.Valid() {
			valid = f.Validity()
		}
		role := parts[i].Role
		if p.look.Part == i+1 {
			role = screen.Selected
		}
		x := c.Text(r.X, r.Y+1+i-first, role, text)
		c.TextIn(x, r.Y+1+i-first, r.W-x, validRole(f), valid)
	}
}

func validRole(f model.Facts) screen.Role {
	if f.Valid() {
		return screen.Good
	}
	return screen.Bad
}

// column are the measures beside the picture, a paragraph a solid.
func (p *Solid) column(c *screen.Canvas, r screen.Rect, env pane.Env, of *seen) {
	y := r.Y
	put := func(label, text string, role screen.Role) {
		if y < r.Y+r.H {
			c.Text(r.X, y, screen.Dim, label)
			c.TextIn(r.X+10, y, r.W-10, role, text)
			y++
		}
	}
	box := of.scene.Box()
	put("all", solid.Extent(box.Size()), screen.Title)
	put("scale", "a cell is "+solid.Short(p.view.Scale())+" mm", screen.Text)
	parts := of.scene.Parts()
	for i := range parts {
		at := (i + max(p.look.Part-1, 0)) % len(parts) // the one that stands out is the first
		f, role := of.facts[parts[at].Name], parts[at].Role
		if y++; p.look.Part == at+1 {
			role = screen.Selected
		}
		if y >= r.Y+r.H-1 {
			c.TextIn(r.X, r.Y+r.H-1, r.W, screen.Dim, fmt.Sprintf("%c %d more", env.Glyphs.More, len(parts)-i))
			return
		}
		c.TextIn(r.X, y, r.W, role, fmt.Sprintf("%c %s", solid.Sign(at+1), parts[at].Name))
		y++
		put("size", solid.Extent(f.Bounds.Size()), screen.Text)
		put("volume", solid.Number(f.Volume)+" mm3", screen.Text)
		put("mass", grams(f)+" g at 1 g/cm3", screen.Text)
		put("surface", solid.Number(f.Area)+" mm2", screen.Text)
		put("faces", fmt.Sprintf("%d, %d edges", f.Topology.Faces, f.Topology.Edges), screen.Text)
		put("tolerance", tolerance(f), screen.Text)
		put("body", f.Validity(), validRole(f))
	}
	if said := p.said(of); said != "" {
		y++
		put("note", said[2:], screen.Warn)
	}
}

func tolerance(f model.Facts) string {
	if f.Tolerance == 0 {
		return "exact"
	}
	return solid.Short(f.Tolerance) + " mm"
}
