package cad

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Bounds of what is made by templates: mm, and how many.
const (
	leastSize   = 0.1
	mostSize    = 10_000.0
	defaultWall = 3.0
	maxCount    = 100
	clearance   = 0.2 // between a lid's key and the box, each side
)

// goalForms are the clauses by name, each with the forms that it may have. They consist
// of words, at/in for either of two, lengths such as <wall> or <length>x<width>, and
// <count>, a number without a unit. The first form is shown.
func goalForms() map[string][]string {
	return map[string][]string{
		"box":         {"<length>x<width>x<height>"},
		"flat":        {"<length>x<width>x<thickness>"},
		"legs":        {"<leg>x<width>x<thickness>", "<leg>x<upright>x<width>x<thickness>"},
		"section":     {"<diameter>x<length>", "diameter <diameter>x<length>"},
		"disc":        {"<diameter>x<thickness>"},
		"length":      {"length <length>", "<length> long", "<length> length"},
		"width":       {"width <width>", "<width> wide"},
		"height":      {"height <height>", "<height> high/tall"},
		"thickness":   {"thickness <thickness>", "<thickness> thick"},
		"diameter":    {"diameter <diameter>", "<diameter> diameter"},
		"outer":       {"outer diameter <outer>", "od <outer>", "<outer> outer diameter"},
		"inner":       {"inner diameter <inner>", "id <inner>", "<inner> inner diameter"},
		"wall":        {"wall/walls <wall>", "<wall> wall/walls", "<wall> thick wall/walls", "wall thickness <wall>", "<wall> wall thickness"},
		"bore":        {"bore <bore>", "bore diameter <bore>", "<bore> bore"},
		"holes":       {"<count> hole/holes diameter <hole>", "<count> <hole> hole/holes"},
		"corners":     {"<count> holes diameter <hole> at/in corners", "<count> <hole> holes at/in corners"},
		"inset":       {"<inset> from edges", "<inset> from each edge"},
		"centre":      {"hole diameter <centre> in/at centre/center/middle", "<centre> hole in/at centre/center/middle"},
		"bolt circle": {"bolt circle <circle>", "on bolt circle <circle>", "pcd <circle>"},
		"supports":    {"<count> support/supports/feet diameter <diameter> height <support>", "<count> support/supports/feet"},
		"housing":     {"housing/box"},
		"lid":         {"lid/cover"},
		"no lid":      {"no/without lid/cover", "open", "open top"},
		"stepped":     {"stepped"},
	}
}

func goalTemplates() []template {
	return []template{
		{nouns: "box enclosure case housing", must: "length,width,height", clauses: "box,length,width,height,wall,lid,no lid,supports", plan: boxes},
		{nouns: "assembly", must: "length,width,height", clauses: "box,length,width,height,wall,housing,lid,no lid,supports", plan: boxes},
		{nouns: "plate sheet", must: "length,width,thickness", clauses: "flat,length,width,thickness,corners,inset,centre", plan: plate},
		{nouns: "block", must: "length,width,thickness", clauses: "flat,length,width,thickness,corners,inset,centre", plan: plate},
		{nouns: "bracket", must: "leg,width,thickness", clauses: "legs,holes", plan: bracket},
		{nouns: "shaft axle spindle rod", must: "diameter,length", often: true, clauses: "section,diameter,length,bore,stepped", plan: shaft},
		{nouns: "cylinder", must: "diameter,length", clauses: "section,diameter,length,bore", plan: shaft},
		{nouns: "tube pipe sleeve bushing", must: "length", clauses: "length,outer,inner,wall", plan: tube},
		{nouns: "washer", must: "thickness", clauses: "thickness,outer,inner,wall", plan: tube},
		{nouns: "flange", must: "diameter,thickness", clauses: "disc,diameter,thickness,bore,holes,bolt circle", plan: flange},
	}
}

// name is the part's, which a goal may also call otherwise.
func (p *template) name() string { return strings.Fields(p.nouns)[0] }

func templateOf(noun string) *template {
	return first(goalWording().templates, func(p *template) bool { return slices.Contains(strings.Fields(p.nouns), noun) })
}

// boxes is a box that lies open, with its lid and supports if it is to have them.
func boxes(g *goal) ([]PlannedTask, error) {
	x, y, z, wall, usual := g.of("length"), g.of("width"), g.of("height"), g.of("wall"), ""
	if wall == 0 {
		wall, usual = exact(min(defaultWall, min(x, y, z)/5)), " (the goal gives no wall)"
	}
	if err := between("a wall", wall, 0.01, min(x/3, y/3, z/2)); err != nil {
		return nil, err
	}
	lid, count := g.of("lid") > 0, int(g.of("count"))
	name, file, whole := "box", "box_and_lid", g.part.name() == "assembly" || count > 0
	switch {
	case lid && g.of("no lid") > 0:
		return nil, g.refused([]string{"whether there is to be a lid"}, "ambiguous: whether there is to be a lid; say open or with a lid")
	case whole && !lid && count == 0:
		return nil, g.missing("what the assembly has beside the housing: a lid, or 1-4 supports")
	case whole:
		name, file = "housing", "assembly"
	}
	d := &drawing{}
	d.prism("box_block", 0, 0, x, y, 0, z)
	d.prism("box_cavity", wall, wall, x-wall, y-wall, wall, z)
	d.boolean("subtract", "box", "box_block", "box_cavity")
	about, volume := fmt.Sprintf("Create a %s of %sx%sx%s mm with walls of %s mm%s, open above", name, mm(x), mm(y), mm(z), mm(wall), usual), x*y*z-(x-2*wall)*(y-2*wall)*(z-wall)
	if !lid && !whole {
		return alone("box", about, d, volume), nil
	}
	tasks, solids := []PlannedTask{modelled(name, name+"_modeler", about, d, 1, volume)}, 1+count
	if lid {
		in, d := wall+clearance, &drawing{}
		d.prism("lid_plate", 0, 0, x, y, z, wall)
		d.prism("lid_key", in, in, x-in, y-in, z-wall, wall*3/2)
		d.boolean("union", "lid", "lid_plate", "lid_key")
		about = fmt.Sprintf("Create a lid of %s mm that lies on the %s and reaches as far into it", mm(wall), name)
		tasks, solids = append(tasks, modelled("lid", "lid_modeler", about, d, 1, (x*y+(x-2*in)*(y-2*in))*wall)), solids+1
	}
	feet, err := supports(g, x, y, z, count)
	tasks = append(tasks, feet...)
	return append(tasks, merged(file, solids, tasks)), err
}

// supports stand below the corners of a box. Two agents make them.
func supports(g *goal, x, y, z float64, n int) (tasks []PlannedTask, err error) {
	if n == 0 {
		return nil, nil
	}
	diameter, height, usual := g.of("diameter"), g.of("support"), ""
	if diameter == 0 {
		diameter, height, usual = exact(min(x, y)/6), exact(max(1, z/2)), " (the goal does not give their size)"
	}
	if n > 4 {
		return nil, core.Invalid("goal", fmt.Sprint(n, " supports"), "1-4 supports, one below each corner")
	}
	r := diameter / 2
	corners := []spot{{r, r}, {x - r, r}, {x - r, y - r}, {r, y - r}}
	for half, agent := range []string{"support_modeler_a", "support_modeler_b"} {
		d, made := &drawing{}, 0
		for i := 2 * half; i < min(n, 2*half+2); i++ {
			d.cylinder(fmt.Sprintf("support_%d", i+1), corners[i][0], corners[i][1], -height, r, height)
			made++
		}
		if made > 0 {
			about := fmt.Sprintf("Create %d supports below the corners, diameter %s mm, height %s mm%s", made, mm(diameter), mm(height), usual)
			tasks = append(tasks, modelled(fmt.Sprintf("supports_%c", 'a'+half), agent, about, d, made, float64(made)*disc(r)*height))
		}
	}
	return tasks, between("the diameter of a support", diameter, 0.01, min(x, y)/2)
}

// plate is a flat cuboid, with holes near its corners or in its centre.
func plate(g *goal) ([]PlannedTask, error) {
	x, y, z, hole, in, centre := g.of("length"), g.of("width"), g.of("thickness"), g.of("hole"), g.of("inset"), g.of("centre")
	name, r, d := g.part.name(), hole/2, &drawing{}
	about, volume := fmt.Sprintf("Create a %s of %sx%sx%s mm", name, mm(x), mm(y), mm(z)), x*y*z
	var spots []spot // x, y and radius
	switch {
	case (hole > 0) != (in > 0):
		return nil, g.missing("the holes and how far from the edges they are, as in 4 holes diameter 6 at the corners, 10 from the edges")
	case hole > 0 && g.of("count") != 4:
		return nil, core.Invalid("goal", mm(g.of("count"))+" holes at the corners", "4 holes, one at each")
	case hole > 0:
		if err := between("the distance from the edges", in, r+0.1, min(x, y)/2-r-0.1); err != nil {
			return nil, err
		}
		spots = []spot{{in, in, r}, {x - in, in, r}, {x - in, y - in, r}, {in, y - in, r}}
		about += fmt.Sprintf(", with 4 holes of %s mm at the corners, their centres %s mm from the edges", mm(hole), mm(in))
	}
	if centre > 0 {
		if err := between("the diameter of the hole in the centre", centre, leastSize, min(x, y)*0.9); err != nil {
			return nil, err
		}
		if hole > 0 && math.Hypot(x/2-in, y/2-in) < centre/2+r+0.1 {
			return nil, core.Invalid("goal", mm(centre)+" mm in the centre", "a hole that does not reach those at the corners")
		}
		spots = append(spots, spot{x / 2, y / 2, centre / 2})
		about += fmt.Sprintf(", with a hole of %s mm in the centre", mm(centre))
	}
	return drilled(name, about, d, d.rectangle(name+"_outline", 0, 0, x, y, 0), z, volume, spots), nil
}

// bracket is an L: a base and an upright, with holes in a row through the base.
func bracket(g *goal) ([]PlannedTask, error) {
	base, width, t := g.of("leg"), g.of("width"), g.of("thickness")
	upright, n, hole := cmp.Or(g.of("upright"), base), int(g.of("count")), g.of("hole")
	if err := between("the thickness", t, leastSize, min(base, upright)/2); err != nil {
		return nil, err
	}
	if n > 0 {
		if err := between("the diameter of a hole", hole, leastSize, min(base-t, width/float64(n))*0.8); err != nil {
			return nil, err
		}
	}
	d := &drawing{}
	outline := d.loop("outline", spot{0, 0, 0}, spot{base, 0, 0}, spot{base, 0, t}, spot{t, 0, t}, spot{t, 0, upright}, spot{0, 0, upright})
	volume := width * (base*t + (upright-t)*t)
	about := fmt.Sprintf("Create a bracket with legs of %s and %s mm, %s mm wide and %s mm thick", mm(base), mm(upright), mm(width), mm(t))
	if n == 0 {
		d.extrude("bracket", outline, width, &spot{0, 1, 0})
		return alone("bracket", about, d, volume), nil
	}
	solids := []string{d.extrude("angle", outline, width, &spot{0, 1, 0})}
	for i := range n {
		solids = append(solids, d.cylinder(fmt.Sprintf("hole_%d", i+1), t+(base-t)/2, width*(float64(i)+0.5)/float64(n), -1, hole/2, t+2))
	}
	d.boolean("subtract", "bracket", solids...)
	about += fmt.Sprintf(", with %d holes of %s mm in a row through the base", n, mm(hole))
	return alone("bracket", about, d, volume-float64(n)*disc(hole/2)*t), nil
}

// shaft is one cylinder or several in a row, with a bore if it is to have one.
func shaft(g *goal) ([]PlannedTask, error) {
	diameters, lengths, bore := g.told["diameter"], g.told["length"], g.of("bore")
	switch {
	case len(g.told["bore"]) > 1 || len(g.told["stepped"]) > 1:
		return nil, g.refused([]string{"bore"}, "shaft: ambiguous: bore or stepped is told more than once")
	case len(diameters) != len(lengths):
		return nil, g.missing("the diameter and length of each section, as in 20x50 and 16x30")
	case g.of("stepped") > 0 && len(lengths) == 1:
		return nil, g.missing("its other sections, as in 20x50 and 16x30")
	}
	name, d, z, volume := g.part.name(), &drawing{}, 0.0, 0.0
	about := "Create a " + name + ":"
	var solids []string
	for i, diameter := range diameters {
		id, length := fmt.Sprintf("section_%d", i+1), lengths[i]
		if len(diameters) == 1 {
			id = name
		} else if i > 0 {
			about += ","
		}
		curves := d.circle(id+"_outline", 0, 0, z, diameter/2)
		if bore > 0 {
			if err := between("the bore", bore, leastSize, diameter*0.9); err != nil {
				return nil, err
			}
			curves = append(curves, d.circle(id+"_bore", 0, 0, z, bore/2)...)
		}
		solids = append(solids, d.extrude(id, curves, length, nil))
		z, volume = exact(z+length), volume+(disc(diameter/2)-disc(bore/2))*length
		about += fmt.Sprintf(" diameter %s mm on %s mm", mm(diameter), mm(length))
	}
	if len(solids) > 1 {
		d.boolean("union", name, solids...)
	}
	if bore > 0 {
		about += fmt.Sprintf(", with a bore of %s mm", mm(bore))
	}
	return alone(name, about, d, volume), nil
}

// tube is told by two of its diameters and its wall.
func tube(g *goal) ([]PlannedTask, error) {
	name, outer, inner, wall, length := g.part.name(), g.of("outer"), g.of("inner"), g.of("wall"), g.of("length")+g.of("thickness")
	switch {
	case outer > 0 && inner > 0 && wall > 0 && math.Abs(outer-inner-2*wall) > 1e-6:
		return nil, g.refused([]string{"which of them are meant"}, "ambiguous: outer diameter, inner diameter and wall; give two of them")
	case outer > 0 && wall > 0:
		inner = exact(outer - 2*wall)
	case inner > 0 && wall > 0:
		outer = exact(inner + 2*wall)
	case outer == 0 || inner == 0:
		return nil, g.missing("two of outer diameter, inner diameter and wall, as in outer diameter 30, wall 2")
	}
	if err := between("the inner diameter", inner, leastSize, outer*0.98); err != nil {
		return nil, err
	}
	about := fmt.Sprintf("Create a %s of outer diameter %s mm, inner diameter %s mm, %s mm long", name, mm(outer), mm(inner), mm(length))
	d := &drawing{}
	return drilled(name, about, d, d.circle(name+"_outline", 0, 0, 0, outer/2), length, disc(outer/2)*length, []spot{{0, 0, inner / 2}}), nil
}

// flange is a disc with a bore, and holes on a circle.
func flange(g *goal) ([]PlannedTask, error) {
	diameter, thick, bore, n, hole, circle := g.of("diameter"), g.of("thickness"), g.of("bore"), g.of("count"), g.of("hole"), g.of("circle")
	about := fmt.Sprintf("Create a flange of diameter %s mm, %s mm thick", mm(diameter), mm(thick))
	var holes []spot
	if bore > 0 {
		if err := between("the bore", bore, leastSize, diameter*0.9); err != nil {
			return nil, err
		}
		holes = append(holes, spot{0, 0, bore / 2})
		about += fmt.Sprintf(", with a bore of %s mm", mm(bore))
	}
	switch {
	case (n > 0) != (circle > 0):
		return nil, g.missing("the holes and the one circle that they are on, as in 6 holes diameter 9, bolt circle 90")
	case n > 0:
		if err := between("the bolt circle", circle, bore+hole+0.2, diameter-hole-0.2); err != nil {
			return nil, err
		}
		if n > 1 && circle*math.Sin(math.Pi/n) < hole+0.2 {
			return nil, core.Invalid("goal", fmt.Sprintf("%v holes of %s mm on a circle of %s mm", n, mm(hole), mm(circle)), "holes that do not meet")
		}
		for i := range int(n) {
			sin, cos := math.Sincos(2 * math.Pi * float64(i) / n)
			holes = append(holes, spot{circle / 2 * cos, circle / 2 * sin, hole / 2})
		}
		about += fmt.Sprintf(", with %v holes of %s mm on a circle of %s mm", n, mm(hole), mm(circle))
	}
	d := &drawing{}
	return drilled("flange", about, d, d.circle("flange_outline", 0, 0, 0, diameter/2), thick, disc(diameter/2)*thick, holes), nil
}
