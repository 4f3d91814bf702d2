package cad

import (
	"cmp"
	"fmt"
	"math"

	"swarmdeck/engine/core"
)

const shaftTold = "the diameter and length of each section, a bore and a keyway"

// section is one cylinder of a shaft.
type section struct{ diameter, length float64 }

// sections are those of a shaft, in the order of the text: sizes like 20x50, or
// diameters and lengths by turns.
func (g *goal) sections() ([]section, error) {
	var all []section
	var open section
	for i := range g.facts {
		f := &g.facts[i]
		if f.of != "" || f.used {
			continue
		}
		switch {
		case f.name == "size" && len(f.size) == 2:
			all = append(all, section{f.size[0], f.size[1]})
		case f.name == "last length" && len(all) > 0:
		case (f.name == "diameter" || f.name == "outer diameter") && open.diameter == 0:
			open.diameter = f.value
		case (f.name == "length" || g.part.name == "cylinder" && (f.name == "height" || f.name == "thickness")) && open.length == 0:
			open.length = f.value
		default:
			continue
		}
		if f.used = true; open.diameter > 0 && open.length > 0 {
			all, open = append(all, open), section{}
		}
	}
	var missing []string
	if open.diameter == 0 && (open.length > 0 || len(all) == 0) {
		missing = append(missing, "the diameter, as in \"diameter 20\"")
	}
	if open.length == 0 && (open.diameter > 0 || len(all) == 0) {
		missing = append(missing, "the length, as in \"length 100\"")
	}
	if len(missing) > 0 {
		return nil, g.missing(missing...)
	}
	stepped := g.says("", "stepped")
	switch {
	case stepped && len(all) == 1:
		return nil, g.missing("its other sections, as in 20x50 and 16x30")
	case len(all) > maxHoles || g.part.name == "cylinder" && len(all) > 1:
		most := maxHoles
		if g.part.name == "cylinder" {
			most = 1
		}
		return nil, core.Invalid("goal", fmt.Sprintf("%d sections", len(all)), fmt.Sprintf("at most %d of a %s", most, g.part.name))
	}
	return all, nil
}

// bore is the diameter of the hole along an axis, 0 when there is none.
func (g *goal) bore() (float64, error) {
	g.says("bore", "round")
	g.says("bore", "through")
	there, diameter := g.says("bore", "there"), g.either("bore", "diameter", "", "inner diameter")
	turned := g.part.name == "shaft" || g.part.name == "cylinder" // others say so of themselves, or can't be
	hollow, solid := turned && g.says("", "hollow"), turned && g.says("", "solid")
	switch {
	case diameter == 0 && (there || hollow):
		return 0, g.missing("the diameter of the bore, as in \"bore 6\"")
	case diameter > 0 && solid:
		return 0, g.ambiguous("whether it is solid", "leave out solid or the bore")
	}
	return diameter, nil
}

// shaft is one cylinder or several in a row, with a bore or a keyway if it is to
// have them.
func shaft(g *goal) ([]PlannedTask, error) {
	parts, err := g.sections()
	if err != nil {
		return nil, err
	}
	bore, err := g.bore()
	if err != nil {
		return nil, err
	}
	name, d, z, volume := g.part.name, &drawing{}, 0.0, 0.0
	keyed := g.speaks("keyway")
	if keyed && len(parts) > 1 {
		return nil, g.missing("which section the keyway is in; a shaft of one section can have one")
	}
	var solids []string
	for i, p := range parts {
		if err := cmp.Or(between("the diameter", p.diameter, 0.1, mostSize), between("the length", p.length, 0.1, mostSize)); err != nil {
			return nil, err
		}
		if bore > 0 {
			if err := between("the bore", bore, 0.1, p.diameter*0.9); err != nil {
				return nil, err
			}
		}
		id := fmt.Sprintf("section_%d", i+1)
		switch {
		case keyed:
			id = "blank"
		case len(parts) == 1:
			id = name
		}
		curves := d.circle(id+"_outline", 0, 0, z, p.diameter/2)
		if bore > 0 {
			curves = append(curves, d.circle(id+"_bore", 0, 0, z, bore/2)...)
		}
		solids = append(solids, d.extrude(id, curves, p.length, nil))
		z = exact(z + p.length)
		volume += (disc(p.diameter/2) - disc(bore/2)) * p.length
	}
	about := fmt.Sprintf("Create a %s of diameter %s mm, %s mm long", name, mm(parts[0].diameter), mm(z))
	if len(parts) > 1 {
		d.boolean("union", name, solids...)
		about = fmt.Sprintf("Create a %s of %d sections, %s mm long in all:", name, len(parts), mm(z))
		for i, p := range parts {
			if i > 0 {
				about += ","
			}
			about += fmt.Sprintf(" diameter %s mm on %s mm", mm(p.diameter), mm(p.length))
		}
	}
	if bore > 0 {
		about += fmt.Sprintf(", with a bore of %s mm", mm(bore))
	}
	if keyed {
		cut, more, err := g.keyway(d, parts[0], bore)
		if err != nil {
			return nil, err
		}
		about, volume = about+more, volume-cut
	}
	return alone(name, about, d, volume), nil
}

// keyway cuts a keyway of a blank, and says how much that takes off.
func (g *goal) keyway(d *drawing, s section, bore float64) (cut float64, about string, err error) {
	g.says("keyway", "there")
	width, depth, length := g.length("keyway", "width"), g.length("keyway", "depth"), g.length("keyway", "length")
	if width == 0 || depth == 0 || length == 0 {
		return 0, "", g.missing("the width, depth and length of the keyway, as in \"keyway 6 wide 3 deep 40 long\"")
	}
	r, half := s.diameter/2, width/2
	if err := cmp.Or(between("the width of the keyway", width, 0.1, s.diameter*0.8),
		between("the depth of the keyway", depth, r-math.Sqrt(r*r-half*half)+0.01, (r-bore/2)*0.9),
		between("the length of the keyway", length, 0.1, s.length)); err != nil {
		return 0, "", err
	}
	end := length
	if length == s.length {
		end++ // past the other end
	}
	d.prism("keyway", box2{-half, r - depth, half, r + 1}, -1, end+1, 0)
	d.boolean("subtract", g.part.name, "blank", "keyway")
	under := half*math.Sqrt(r*r-half*half) + r*r*math.Asin(half/r) // the circle over the keyway, down to the axis
	return (under - width*(r-depth)) * length, fmt.Sprintf(", with a keyway from one end, %s mm wide, %s mm deep below the crown and %s mm long", mm(width), mm(depth), mm(length)), nil
}

// ringed is a plan for what lies between circles: a disc with round holes, all
// drawn at once.
func ringed(name, about string, outer, inner, height float64, holes ...spot) []PlannedTask {
	d := &drawing{}
	curves := d.circle(name+"_outline", 0, 0, 0, outer/2)
	area := disc(outer / 2)
	if inner > 0 {
		curves, area = append(curves, d.circle(name+"_bore", 0, 0, 0, inner/2)...), area-disc(inner/2)
	}
	for i, h := range holes { // x, y and radius
		curves, area = append(curves, d.circle(fmt.Sprintf("hole_%d", i+1), h[0], h[1], 0, h[2])...), area-disc(h[2])
	}
	d.extrude(name, curves, height, nil)
	return alone(name, about, d, area*height)
}

func tube(g *goal) ([]PlannedTask, error) {
	walled := g.says("wall", "there")
	outer, length := g.length("", "outer diameter"), g.length("", "length", "height")
	inner, err := g.bore()
	if err != nil {
		return nil, err
	}
	wall := g.either("wall", "thickness", "", "thickness")
	var missing []string
	switch {
	case walled && wall == 0:
		missing = append(missing, "the thickness of the wall, as in \"wall 2\"")
	case outer > 0 && inner > 0 && wall > 0 && math.Abs(outer-inner-2*wall) > 1e-6:
		return nil, g.ambiguous("which of outer diameter, inner diameter and wall are meant", "give two of them")
	case outer > 0 && inner > 0:
		wall = exact((outer - inner) / 2)
	case outer > 0 && wall > 0:
		inner = exact(outer - 2*wall)
	case inner > 0 && wall > 0:
		outer = exact(inner + 2*wall)
	default:
		missing = append(missing, "two of outer diameter, inner diameter and wall, as in \"outer diameter 30, wall 2\"")
	}
	if length == 0 {
		missing = append(missing, "the length, as in \"length 100\"")
	}
	if len(missing) > 0 {
		return nil, g.missing(missing...)
	}
	if err := cmp.Or(between("the outer diameter", outer, leastSize, mostSize), between("the wall", wall, 0.1, outer*0.45), between("the length", length, 0.1, mostSize)); err != nil {
		return nil, err
	}
	about := fmt.Sprintf("Create a tube of outer diameter %s mm, inner diameter %s mm, %s mm long", mm(outer), mm(inner), mm(length))
	return ringed("tube", about, outer, inner, length), nil
}

func washer(g *goal) ([]PlannedTask, error) {
	inner, err := g.bore()
	if err != nil {
		return nil, err
	}
	outer, thick := g.length("", "outer diameter"), g.length("", "thickness", "height")
	var missing []string
	for _, want := range []struct {
		v    float64
		name string
	}{{outer, "the outer diameter"}, {inner, "the inner diameter"}, {thick, "the thickness"}} {
		if want.v == 0 {
			missing = append(missing, want.name)
		}
	}
	if len(missing) > 0 {
		missing[len(missing)-1] += ", as in \"outer diameter 12, inner diameter 6.4, thickness 1.6\""
		return nil, g.missing(missing...)
	}
	if err := cmp.Or(between("the outer diameter", outer, leastSize, mostSize), between("the inner diameter", inner, 0.1, outer*0.95), between("the thickness", thick, 0.1, mostSize)); err != nil {
		return nil, err
	}
	about := fmt.Sprintf("Create a washer of outer diameter %s mm, inner diameter %s mm, %s mm thick", mm(outer), mm(inner), mm(thick))
	return ringed("washer", about, outer, inner, thick), nil
}

// flange is a disc with a bore, and holes on a circle.
func flange(g *goal) ([]PlannedTask, error) {
	var diameter, thick float64
	if size := g.size(2); size != nil {
		diameter, thick = size[0], size[1]
	} else {
		diameter, thick = g.length("", "diameter", "outer diameter"), g.length("", "thickness", "height")
	}
	var missing []string
	if diameter == 0 {
		missing = append(missing, "the diameter, as in \"diameter 120\"")
	}
	if thick == 0 {
		missing = append(missing, "the thickness, as in \"thickness 10\"")
	}
	if len(missing) > 0 {
		return nil, g.missing(missing...)
	}
	bore, err := g.bore()
	if err != nil {
		return nil, err
	}
	n, hole, err := g.holes()
	if err != nil {
		return nil, err
	}
	g.says("bolt circle", "there")
	circle := g.length("bolt circle", "diameter")
	if n > 0 && circle == 0 {
		return nil, g.missing("the diameter of the circle that the holes are on, as in \"bolt circle 90\"")
	}
	if n == 0 && (circle > 0 || g.speaks("bolt circle")) {
		return nil, g.missing("the holes on the bolt circle, as in \"6 holes diameter 9\"")
	}
	if err := cmp.Or(between("the diameter", diameter, leastSize, mostSize), between("the thickness", thick, 0.1, mostSize)); err != nil {
		return nil, err
	}
	if bore > 0 {
		if err := between("the bore", bore, 0.1, diameter*0.9); err != nil {
			return nil, err
		}
	}
	about := fmt.Sprintf("Create a flange of diameter %s mm, %s mm thick", mm(diameter), mm(thick))
	if bore > 0 {
		about += fmt.Sprintf(", with a bore of %s mm", mm(bore))
	}
	var holes []spot
	if n > 0 {
		if err := cmp.Or(between("the diameter of a hole", hole, 0.1, diameter/2), between("the bolt circle", circle, bore+hole+0.2, diameter-hole-0.2)); err != nil {
			return nil, err
		}
		if n > 1 && circle*math.Sin(math.Pi/float64(n)) < hole+0.2 {
			return nil, core.Invalid("goal", fmt.Sprintf("%d holes of %s mm on a circle of %s mm", n, mm(hole), mm(circle)), "holes that do not meet")
		}
		for i := range n {
			sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
			holes = append(holes, spot{circle / 2 * cos, circle / 2 * sin, hole / 2})
		}
		about += fmt.Sprintf(", with %d %s of %s mm on a circle of %s mm", n, plural(n, "hole"), mm(hole), mm(circle))
	}
	return ringed("flange", about, diameter, bore, thick, holes...), nil
}
