package cad

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"swarmdeck/engine/core"
)

// seats of the agents that the tasks of a pattern name, each with a workspace of
// its own.
func seatsOf(tasks []PlannedTask) []Seat {
	var seats []Seat
	for _, t := range tasks {
		if slices.ContainsFunc(seats, func(s Seat) bool { return s.AgentID == t.AgentID }) {
			continue
		}
		role := "modeler"
		if t.AgentID == "integrator" {
			role = "integrator"
		}
		seats = append(seats, Seat{AgentID: t.AgentID, RoleName: role, WorkspaceID: "ws_" + t.AgentID})
	}
	return seats
}

// Bounds of what the patterns make, in mm.
const (
	leastSize   = 1.0
	mostSize    = 10_000.0
	defaultWall = 3.0
	maxHoles    = 100
	clearance   = 0.2 // between a lid's key and the box, each side
)

// size3 is the size of a box or plate: of three numbers, or of three named ones.
func (g *goal) size3(third ...string) ([]float64, error) {
	if size := g.size(3); size != nil {
		g.says("", "last "+third[0], "last "+third[1])
		return size, nil
	}
	size := []float64{g.length("", "length"), g.length("", "width"), g.length("", third...)}
	var missing []string
	for i, name := range []string{"length", "width", third[0]} {
		if size[i] == 0 {
			missing = append(missing, "the "+name)
		}
	}
	switch len(missing) {
	case 0:
		return size, nil
	case 3:
		missing = []string{"its size, as in 100x80x20 mm"}
	}
	return nil, g.missing(missing...)
}

// corner is the radius that upright corners are rounded by, 0 for sharp ones.
func (g *goal) corner(size []float64) (float64, error) {
	if !g.speaks("corner") {
		return 0, nil
	}
	g.says("corner", "there")
	g.says("corner", "rounded", "round")
	radius := g.length("corner", "radius")
	if radius == 0 {
		radius = g.length("corner", "diameter") / 2
	}
	if radius == 0 {
		return 0, g.missing("the radius of its corners, as in \"corner radius 5\"")
	}
	return radius, between("a corner radius", radius, 0.1, min(size[0], size[1])*0.49)
}

// holes are how many holes of which diameter there are to be.
func (g *goal) holes() (n int, diameter float64, err error) {
	if !g.speaks("hole") {
		return 0, 0, nil
	}
	g.says("hole", "there")
	g.says("hole", "round")
	g.says("hole", "through")
	count := g.length("hole", "count")
	switch diameter = g.length("hole", "diameter"); {
	case count == 0:
		return 0, 0, g.missing("how many holes, as in \"2 holes diameter 6\"")
	case diameter == 0:
		return 0, 0, g.missing("the diameter of its holes, as in \"2 holes diameter 6\"")
	case count != math.Trunc(count) || count > maxHoles:
		return 0, 0, core.Invalid("goal", mm(count)+" holes", fmt.Sprintf("1-%d holes", maxHoles))
	}
	return int(count), diameter, nil
}

// hollow is a box that lies open: its size, wall and corner radius.
type hollow struct {
	size         []float64
	wall, corner float64
}

// box draws it.
func (h *hollow) box() (*drawing, float64) {
	x, y, z, w, inner := h.size[0], h.size[1], h.size[2], h.wall, max(h.corner-h.wall, 0)
	d := &drawing{}
	d.prism("box_block", box2{0, 0, x, y}, 0, z, h.corner)
	d.prism("box_cavity", box2{w, w, x - w, y - w}, w, z, inner)
	d.boolean("subtract", "box", "box_block", "box_cavity")
	return d, rounded(x, y, h.corner)*z - rounded(x-2*w, y-2*w, inner)*(z-w)
}

// lid draws a lid that lies on it and reaches into it by the thickness of a wall.
func (h *hollow) lid(thick float64) (*drawing, float64) {
	x, y, z, in := h.size[0], h.size[1], h.size[2], h.wall+clearance
	d, inner := &drawing{}, max(h.corner-in, 0)
	d.prism("lid_plate", box2{0, 0, x, y}, z, thick, h.corner)
	d.prism("lid_key", box2{in, in, x - in, y - in}, z-h.wall, h.wall+thick/2, inner)
	d.boolean("union", "lid", "lid_plate", "lid_key")
	return d, rounded(x, y, h.corner)*thick + rounded(x-2*in, y-2*in, inner)*h.wall
}

// boxes is a box, with its lid and supports below it if it is to have them.
func boxes(g *goal) ([]PlannedTask, error) {
	size, err := g.size3("height", "depth")
	if err != nil {
		return nil, err
	}
	h := hollow{size: size}
	if h.corner, err = g.corner(size); err != nil {
		return nil, err
	}
	g.says("wall", "there")
	walled, usual := g.speaks("wall"), ""
	if h.wall = g.either("wall", "thickness", "", "thickness"); h.wall == 0 {
		if walled {
			return nil, g.missing("the thickness of its walls, as in \"wall 2\"")
		}
		h.wall, usual = exact(min(defaultWall, min(size[0], size[1], size[2])/5)), " (the goal gives no wall)"
	}
	if err := cmp.Or(
		between("length", size[0], leastSize, mostSize), between("width", size[1], leastSize, mostSize), between("height", size[2], leastSize, mostSize),
		between("a wall", h.wall, 0.1, min(size[0]/3, size[1]/3, size[2]/2)),
	); err != nil {
		return nil, err
	}
	lid, thick := g.says("lid", "there"), cmp.Or(g.length("lid", "thickness"), h.wall)
	name, file := "box", "box"
	if lid {
		file = "box_and_lid"
	}
	if g.says("", assembled) || g.speaks("support") {
		name, file = "housing", "assembly"
	}
	if file == "assembly" && !lid && !g.speaks("support") {
		return nil, g.missing("what the assembly has beside the housing: a lid, or 1-4 supports")
	}
	if g.says("", "open") && lid {
		return nil, g.ambiguous("whether there is to be a lid", "say open or with a lid")
	}
	d, volume := h.box()
	about := fmt.Sprintf("Create a %s of %s mm with walls of %s mm%s, open above%s", name, toldSize(size), mm(h.wall), usual, toldCorner(h.corner))
	if file == "box" {
		return alone("box", about, d, volume), nil
	}
	tasks := []PlannedTask{modelled(name, name+"_modeler", about, d, 1, volume)}
	solids := 1
	if lid {
		if err := between("a lid", thick, 0.1, size[2]); err != nil {
			return nil, err
		}
		d, volume = h.lid(thick)
		tasks, solids = append(tasks, modelled("lid", "lid_modeler", fmt.Sprintf("Create a lid of %s mm that lies on the %s and reaches %s mm into it", mm(thick), name, mm(h.wall)), d, 1, volume)), 2
	}
	feet, n, err := supports(g, h)
	return append(append(tasks, feet...), merged(file, solids+n, append(tasks, feet...))), err
}

// supports stand below the corners of a box. Two agents make them.
func supports(g *goal, h hollow) (tasks []PlannedTask, n int, err error) {
	if !g.speaks("support") {
		return nil, 0, nil
	}
	g.says("support", "there")
	g.says("support", "round")
	x, y := h.size[0], h.size[1]
	count, usual := g.length("support", "count"), ""
	diameter, height := g.length("support", "diameter"), g.length("support", "height")
	if diameter == 0 || height == 0 {
		usual = " (the goal does not give all of it)"
	}
	diameter, height = cmp.Or(diameter, exact(min(x, y)/6)), cmp.Or(height, exact(max(1, h.size[2]/2)))
	switch n = int(count); {
	case count == 0:
		return nil, 0, g.missing("how many supports, as in \"four supports\"")
	case count != math.Trunc(count) || count > 4:
		return nil, 0, core.Invalid("goal", mm(count)+" supports", "1-4 supports, one below each corner")
	}
	if err := cmp.Or(between("the diameter of a support", diameter, 0.1, min(x, y)/2), between("the height of a support", height, 0.1, mostSize)); err != nil {
		return nil, 0, err
	}
	radius := diameter / 2
	in := max(radius, h.corner)
	corners := []spot{{in, in}, {x - in, in}, {x - in, y - in}, {in, y - in}}
	for half, agent := range []string{"support_modeler_a", "support_modeler_b"} {
		d, made := &drawing{}, 0
		for i := 2 * half; i < min(n, 2*half+2); i++ {
			name := fmt.Sprintf("support_%d", i+1)
			d.extrude(name, d.circle(name+"_outline", corners[i][0], corners[i][1], -height, radius), height, nil)
			made++
		}
		if made > 0 {
			about := fmt.Sprintf("Create %d %s below the corners, diameter %s mm, height %s mm%s", made, plural(made, "support"), mm(diameter), mm(height), usual)
			tasks = append(tasks, modelled(fmt.Sprintf("supports_%c", 'a'+half), agent, about, d, made, float64(made)*disc(radius)*height))
		}
	}
	return tasks, n, nil
}

// bracket is an L: a base and an upright, with holes in a row through the base.
func bracket(g *goal) ([]PlannedTask, error) {
	size := g.size(4)
	if three := g.size(3); size == nil && three != nil {
		size = []float64{three[0], three[0], three[1], three[2]} // both legs alike
	} else if size == nil {
		return nil, g.missing("leg, width and thickness, as in 60x40x5 mm, or both legs, as in 60x50x40x5 mm")
	} else if three != nil {
		return nil, g.ambiguous("which of its sizes is meant", "give one")
	}
	base, upright, width, t := size[0], size[1], size[2], size[3]
	if err := cmp.Or(
		between("a leg", base, leastSize, mostSize), between("a leg", upright, leastSize, mostSize), between("the width", width, leastSize, mostSize),
		between("the thickness", t, 0.1, min(base, upright)/2),
	); err != nil {
		return nil, err
	}
	n, hole, err := g.holes()
	if err != nil {
		return nil, err
	}
	d := &drawing{}
	outline := d.loop("outline", spot{0, 0, 0}, spot{base, 0, 0}, spot{base, 0, t}, spot{t, 0, t}, spot{t, 0, upright}, spot{0, 0, upright})
	volume := width * (base*t + (upright-t)*t)
	about := fmt.Sprintf("Create a bracket with legs of %s and %s mm, %s mm wide and %s mm thick", mm(base), mm(upright), mm(width), mm(t))
	if n == 0 {
		d.extrude("bracket", outline, width, &spot{0, 1, 0})
		return alone("bracket", about, d, volume), nil
	}
	if err := between("the diameter of a hole", hole, 0.1, min(base-t, width/float64(n))*0.8); err != nil {
		return nil, err
	}
	solids := []string{d.extrude("angle", outline, width, &spot{0, 1, 0})}
	for i := range n {
		name := fmt.Sprintf("hole_%d", i+1)
		y := width * (float64(i) + 0.5) / float64(n)
		solids = append(solids, d.extrude(name, d.circle(name+"_outline", t+(base-t)/2, y, -1, hole/2), t+2, nil))
	}
	d.boolean("subtract", "bracket", solids...)
	about += fmt.Sprintf(", with %d %s of %s mm in a row through the base", n, plural(n, "hole"), mm(hole))
	return alone("bracket", about, d, volume-float64(n)*disc(hole/2)*t), nil
}
