package cad

import (
	"cmp"
	"fmt"
	"math"
)

const flatTold = "its size, corner radius, and holes, a slot or a boss with their sizes and places"

// plate is a plate or block, with holes near its corners, and a hole, slot or
// boss in its centre.
func plate(g *goal) ([]PlannedTask, error) {
	third := []string{"thickness", "height"}
	if g.part.name == "block" {
		third = []string{"height", "thickness"}
	}
	size, err := g.size3(third...)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(between("length", size[0], leastSize, mostSize), between("width", size[1], leastSize, mostSize), between("the "+third[0], size[2], 0.1, mostSize)); err != nil {
		return nil, err
	}
	radius, err := g.corner(size)
	if err != nil {
		return nil, err
	}
	name := g.part.name
	p := plated{goal: g, d: &drawing{}, size: size, volume: rounded(size[0], size[1], radius) * size[2]}
	p.about = fmt.Sprintf("Create a %s of %s mm%s", name, toldSize(size), toldCorner(radius))
	for _, add := range []func() error{p.holes, p.slot, p.boss} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	if p.middle > 1 {
		return nil, g.ambiguous("which of a hole, a slot and a boss is in the centre", "give one of them")
	}
	p.d.prism(p.base(), box2{0, 0, size[0], size[1]}, 0, size[2], radius)
	p.steps()
	if len(p.cut) > 0 {
		to := name
		if p.raised {
			to = name + "_cut"
		}
		p.d.boolean("subtract", to, append([]string{p.base()}, p.cut...)...)
	}
	if p.raised {
		from := p.base()
		if len(p.cut) > 0 {
			from = name + "_cut"
		}
		p.d.boolean("union", name, from, "boss")
	}
	return alone(name, p.about, p.d, p.volume), nil
}

// plated is a plate that is being thought of.
type plated struct {
	*goal

	d      *drawing
	size   []float64
	volume float64
	about  string
	tools  []func() // draw what is cut off or put on
	cut    []string // solids
	raised bool     // has a boss
	middle int      // how many there are in the centre
	// What is kept free: the half width and depth of what is in the centre, and
	// the radius and the distance from the edges of what is near the corners.
	keep  [2]float64
	hole  float64
	inset float64
}

// base is the name of what everything is cut off from.
func (p *plated) base() string {
	if len(p.cut) == 0 && !p.raised {
		return p.part.name
	}
	return p.part.name + "_blank"
}

func (p *plated) steps() {
	for _, draw := range p.tools {
		draw()
	}
}

// round adds a cylinder that goes through the plate.
func (p *plated) round(name string, x, y, radius float64) {
	p.cut = append(p.cut, name)
	p.tools = append(p.tools, func() {
		p.d.extrude(name, p.d.circle(name+"_outline", x, y, -1, radius), p.size[2]+2, nil)
	})
}

func (p *plated) holes() error {
	n, diameter, err := p.goal.holes()
	if n == 0 || err != nil {
		return err
	}
	x, y, r := p.size[0], p.size[1], diameter/2
	corners, centre := p.says("hole", "corners"), p.says("hole", "centre")
	if p.says("hole", "by corner") && n == 1 {
		corners, n = true, 4
	}
	switch {
	case corners && centre, !corners && !centre, corners && n != 4, centre && n != 1:
		return p.missing(`where the holes are, as in "4 holes diameter 6 at the corners, 10 mm from the edges" or "a hole diameter 6 in the centre"`)
	case centre:
		if err := between("the diameter of a hole", diameter, 0.1, min(x, y)*0.9); err != nil {
			return err
		}
		p.round("hole_1", x/2, y/2, r)
		p.middle, p.keep = p.middle+1, [2]float64{r, r}
		p.about += fmt.Sprintf(", with a hole of %s mm in the centre", mm(diameter))
	default:
		p.says("edge distance", "there")
		in := p.length("edge distance", "distance")
		if in == 0 {
			return p.missing(`how far the holes are from the edges, as in "10 mm from the edges"`)
		}
		if err := cmp.Or(between("the diameter of a hole", diameter, 0.1, min(x, y)/2), between("the distance from the edges", in, r+0.1, min(x, y)/2-r-0.1)); err != nil {
			return err
		}
		for i, at := range []spot{{in, in}, {x - in, in}, {x - in, y - in}, {in, y - in}} {
			p.round(fmt.Sprintf("hole_%d", i+1), at[0], at[1], r)
		}
		p.hole, p.inset = r, in
		p.about += fmt.Sprintf(", with 4 holes of %s mm at the corners, their centres %s mm from the edges", mm(diameter), mm(in))
	}
	p.volume -= float64(n) * disc(r) * p.size[2]
	return nil
}

// central takes what says that a feature is in the centre, and checks that it
// does not reach the holes near the corners.
func (p *plated) central(name string, x, y float64) error {
	p.says(name, "round")
	p.says(name, "through")
	if !p.says(name, "centre") {
		return p.missing(fmt.Sprintf(`where the %s is, as in "in the centre"`, name))
	}
	p.middle++
	if p.hole > 0 && p.size[0]/2-p.inset < x+p.hole && p.size[1]/2-p.inset < y+p.hole {
		return p.refused(nil, "%s: the %s would reach the holes near the corners; give smaller sizes", p.part.name, name)
	}
	return nil
}

func (p *plated) slot() error {
	if !p.speaks("slot") {
		return nil
	}
	p.says("slot", "there")
	length, width := p.length("slot", "length"), p.length("slot", "width")
	if length == 0 || width == 0 {
		return p.missing(`the length and width of the slot, as in "slot 40 long 8 wide in the centre"`)
	}
	if err := cmp.Or(between("the width of the slot", width, 0.1, p.size[1]*0.9), between("the length of the slot", length, width+0.1, p.size[0]*0.9), p.central("slot", length/2, width/2)); err != nil {
		return err
	}
	x, y, r, half := p.size[0]/2, p.size[1]/2, width/2, (length-width)/2
	p.cut = append(p.cut, "slot_middle")
	p.tools = append(p.tools, func() {
		p.d.prism("slot_middle", box2{x - half, y - r, x + half, y + r}, -1, p.size[2]+2, 0)
	})
	p.round("slot_end_1", x-half, y, r)
	p.round("slot_end_2", x+half, y, r)
	p.volume -= (2*half*width + disc(r)) * p.size[2]
	p.about += fmt.Sprintf(", with a slot through its centre, %s mm long over its round ends and %s mm wide", mm(length), mm(width))
	return nil
}

func (p *plated) boss() error {
	if !p.speaks("boss") {
		return nil
	}
	p.says("boss", "there")
	diameter, height := p.length("boss", "diameter"), p.length("boss", "height")
	if diameter == 0 || height == 0 {
		return p.missing(`the diameter and height of the boss, as in "boss diameter 20 height 10 in the centre"`)
	}
	if err := cmp.Or(between("the diameter of the boss", diameter, 0.1, min(p.size[0], p.size[1])*0.9), between("the height of the boss", height, 0.1, mostSize), p.central("boss", diameter/2, diameter/2)); err != nil {
		return err
	}
	p.raised = true
	sunk := exact(math.Min(p.size[2]/2, 1)) // into the plate, so that they are one
	p.tools = append(p.tools, func() {
		p.d.extrude("boss", p.d.circle("boss_outline", p.size[0]/2, p.size[1]/2, p.size[2]-sunk, diameter/2), height+sunk, nil)
	})
	p.volume += disc(diameter/2) * height
	p.about += fmt.Sprintf(", with a boss in the centre of its top, diameter %s mm, height %s mm", mm(diameter), mm(height))
	return nil
}
