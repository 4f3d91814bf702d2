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

// boxPart is a hollow box, open above.
func boxPart(size []float64, wall float64) (*drawing, float64) {
	x, y, z := size[0], size[1], size[2]
	d := &drawing{}
	d.extrude("box_block", d.rectangle("box_outer", 0, 0, x, y, 0), z, nil)
	d.extrude("box_cavity", d.rectangle("box_inner", wall, wall, x-wall, y-wall, wall), z, nil)
	d.boolean("subtract", "box", "box_block", "box_cavity")
	return d, x*y*z - (x-2*wall)*(y-2*wall)*(z-wall)
}

// lidPart lies on the box and reaches into it.
func lidPart(size []float64, wall float64) (*drawing, float64) {
	x, y, z := size[0], size[1], size[2]
	d, in := &drawing{}, wall+clearance
	d.extrude("lid_plate", d.rectangle("lid_outer", 0, 0, x, y, z), wall, nil)
	d.extrude("lid_key", d.rectangle("lid_inner", in, in, x-in, y-in, z-wall), wall+wall/2, nil)
	d.boolean("union", "lid", "lid_plate", "lid_key")
	return d, x*y*wall + (x-2*in)*(y-2*in)*wall
}

// outer is the size of a box: of three numbers, or of three named ones.
func (g *goal) outer(pattern string) ([]float64, error) {
	size, err := g.size(3)
	if err != nil || size != nil {
		return size, err
	}
	size = []float64{g.length("length", "long"), g.length("width", "wide"), g.length("height", "high", "tall", "depth", "deep")}
	var missing []string
	for i, name := range []string{"the length", "the width", "the height"} {
		if size[i] == 0 {
			missing = append(missing, name)
		}
	}
	switch len(missing) {
	case 0:
		return size, nil
	case 3:
		missing = []string{"the outer size, as in 100x80x20 mm"}
	}
	return nil, g.missing(pattern, missing...)
}

func (g *goal) box(pattern string) (size []float64, wall float64, err error) {
	if size, err = g.outer(pattern); err != nil {
		return nil, 0, err
	}
	if wall = g.length("wall", "thickness"); wall == 0 {
		wall = min(defaultWall, min(size[0], size[1], size[2])/5)
	}
	return size, wall, cmp.Or(
		between("length", size[0], leastSize, mostSize), between("width", size[1], leastSize, mostSize), between("height", size[2], leastSize, mostSize),
		between("a wall", wall, 0.1, min(size[0]/3, size[1]/3, size[2]/2)),
	)
}

func boxAndLid(g *goal) ([]PlannedTask, error) {
	size, wall, err := g.box("box and lid")
	if err != nil {
		return nil, err
	}
	d, volume := boxPart(size, wall)
	about := fmt.Sprintf("Create a box of %gx%gx%g mm with walls of %g mm, open above", size[0], size[1], size[2], wall)
	if !g.names("lid", "cover", "top") {
		return alone("box", about, d, volume), nil
	}
	tasks := []PlannedTask{modelled("box", "box_modeler", about, d, 1, volume)}
	d, volume = lidPart(size, wall)
	tasks = append(tasks, modelled("lid", "lid_modeler", fmt.Sprintf("Create a lid of %g mm that lies on the box and reaches into it", wall), d, 1, volume))
	return append(tasks, merged("box_and_lid", 2, tasks)), nil
}

// assembly is a box, its lid and supports below it, these by two agents.
func assembly(g *goal) ([]PlannedTask, error) {
	size, wall, err := g.box("assembly")
	if err != nil {
		return nil, err
	}
	n := g.count("support", "foot", "feet", "leg")
	if n = cmp.Or(n, 4); n > 4 {
		return nil, core.Invalid("goal", fmt.Sprintf("%d supports", n), "1-4 supports, one below each corner")
	}
	d, volume := boxPart(size, wall)
	tasks := []PlannedTask{modelled("housing", "housing_modeler", fmt.Sprintf("Create a housing of %gx%gx%g mm with walls of %g mm", size[0], size[1], size[2], wall), d, 1, volume)}
	d, volume = lidPart(size, wall)
	tasks = append(tasks, modelled("lid", "lid_modeler", fmt.Sprintf("Create a lid of %g mm that lies on the housing", wall), d, 1, volume))
	radius := min(size[0], size[1]) / 12
	height := math.Max(1, size[2]/2)
	corners := []spot{{radius, radius}, {size[0] - radius, radius}, {size[0] - radius, size[1] - radius}, {radius, size[1] - radius}}
	for half, agent := range []string{"support_modeler_a", "support_modeler_b"} {
		d, made := &drawing{}, 0
		for i := 2 * half; i < min(n, 2*half+2); i++ {
			name := fmt.Sprintf("support_%d", i+1)
			d.extrude(name, d.circle(name+"_outline", corners[i][0], corners[i][1], -height, radius), height, nil)
			made++
		}
		if made > 0 {
			tasks = append(tasks, modelled(fmt.Sprintf("supports_%c", 'a'+half), agent, fmt.Sprintf("Create %d %s of %g mm below the corners", made, plural(made, "support"), height), d, made, float64(made)*disc(radius)*height))
		}
	}
	return append(tasks, merged("assembly", 2+n, tasks)), nil
}

// bracket is an L: a base and an upright, with holes through the base.
func bracket(g *goal) ([]PlannedTask, error) {
	size, err := g.size(4)
	if err != nil {
		return nil, err
	}
	three, err := g.size(3)
	if err != nil {
		return nil, err
	}
	if size == nil && three != nil {
		size = []float64{three[0], three[0], three[1], three[2]} // both legs alike
	}
	if size == nil {
		return nil, g.missing("bracket", "leg, width and thickness, as in 60x40x5 mm, or both legs, as in 60x50x40x5 mm")
	}
	base, upright, width, t := size[0], size[1], size[2], size[3]
	if err := cmp.Or(
		between("a leg", base, leastSize, mostSize), between("a leg", upright, leastSize, mostSize), between("the width", width, leastSize, mostSize),
		between("the thickness", t, 0.1, min(base, upright)/2),
	); err != nil {
		return nil, err
	}
	d := &drawing{}
	outline := d.loop("outline", spot{0, 0, 0}, spot{base, 0, 0}, spot{base, 0, t}, spot{t, 0, t}, spot{t, 0, upright}, spot{0, 0, upright})
	volume := width * (base*t + (upright-t)*t)
	n, hole := g.count("hole", "bore"), g.length("hole", "bore", "diameter", "dia", "ø", "⌀")
	if n == 0 && (hole != 0 || g.names("hole", "bore")) {
		return nil, g.missing("bracket", "how many holes, as in \"2 holes diameter 6\"")
	}
	if n == 0 {
		d.extrude("bracket", outline, width, &spot{0, 1, 0})
	} else {
		if hole == 0 {
			return nil, g.missing("bracket", "the diameter of its holes, as in \"2 holes diameter 6\"")
		}
		if n > maxHoles {
			return nil, core.Invalid("goal", fmt.Sprintf("%d holes", n), fmt.Sprintf("at most %d holes", maxHoles))
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
		volume -= float64(n) * disc(hole/2) * t
	}
	about := fmt.Sprintf("Create a bracket with legs of %g and %g mm, %g mm wide and %g mm thick, %d holes", base, upright, width, t, n)
	return alone("bracket", about, d, volume), nil
}

// shaft is one cylinder or several in a row, with a bore if it is to have one.
func shaft(g *goal) ([]PlannedTask, error) {
	var parts [][2]float64 // diameter, length
	if len(g.sizes) > maxHoles {
		return nil, core.Invalid("goal", fmt.Sprintf("%d sections", len(g.sizes)), fmt.Sprintf("at most %d sections", maxHoles))
	}
	for _, s := range g.sizes {
		if len(s) == 2 {
			parts = append(parts, [2]float64{s[0], s[1]})
		}
	}
	diameter, length := g.length("diameter", "dia", "ø", "⌀", "d"), g.length("length", "long", "l")
	if len(parts) > 0 && diameter+length > 0 {
		return nil, g.ambiguous("which of its sizes is meant", "write each section as diameter x length, as in 20x50 and 16x30")
	}
	if len(parts) == 0 {
		var missing []string
		if diameter == 0 {
			missing = append(missing, "the diameter, as in \"diameter 20\"")
		}
		if length == 0 {
			missing = append(missing, "the length, as in \"length 100\"")
		}
		if len(missing) > 0 {
			return nil, g.missing("shaft", missing...)
		}
		parts = [][2]float64{{diameter, length}}
	}
	bore := g.length("bore", "bored", "inner")
	d, z, volume := &drawing{}, 0.0, 0.0
	var solids []string
	for i, p := range parts {
		if err := cmp.Or(between("the diameter", p[0], 0.1, mostSize), between("the length", p[1], 0.1, mostSize)); err != nil {
			return nil, err
		}
		if bore > 0 {
			if err := between("the bore", bore, 0.1, p[0]*0.9); err != nil {
				return nil, err
			}
		}
		name := fmt.Sprintf("section_%d", i+1)
		if len(parts) == 1 {
			name = "shaft"
		}
		curves := d.circle(name+"_outline", 0, 0, z, p[0]/2)
		if bore > 0 {
			curves = append(curves, d.circle(name+"_bore", 0, 0, z, bore/2)...)
		}
		solids = append(solids, d.extrude(name, curves, p[1], nil))
		z += p[1]
		volume += (disc(p[0]/2) - disc(bore/2)) * p[1]
	}
	if len(solids) > 1 {
		d.boolean("union", "shaft", solids...)
	}
	return alone("shaft", fmt.Sprintf("Create a shaft of %d %s, %g mm long in all", len(parts), plural(len(parts), "section"), z), d, volume), nil
}

type drawing struct{ steps []Step }

func (d *drawing) add(id, method string, params map[string]any) {
	d.steps = append(d.steps, Step{ID: id, Method: method, Params: core.MustEncode(params)})
}

type spot [3]float64

// loop draws the lines of a closed polygon and returns their ids.
func (d *drawing) loop(name string, corners ...spot) []string {
	ids := make([]string, len(corners))
	for i, at := range corners {
		ids[i] = fmt.Sprintf("%s_%d", name, i+1)
		d.add("", "entity.create_line", map[string]any{"entity_id": ids[i], "start": at, "end": corners[(i+1)%len(corners)]})
	}
	return ids
}

func (d *drawing) rectangle(name string, x0, y0, x1, y1, z float64) []string {
	return d.loop(name, spot{x0, y0, z}, spot{x1, y0, z}, spot{x1, y1, z}, spot{x0, y1, z})
}

func (d *drawing) circle(name string, x, y, z, radius float64) []string {
	d.add("", "entity.create_circle", map[string]any{"entity_id": name, "center": spot{x, y, z}, "radius": radius})
	return []string{name}
}

// extrude makes a solid of curves; along is nil for their plane's normal.
func (d *drawing) extrude(name string, curves []string, distance float64, along *spot) string {
	params := map[string]any{"entity_id": name, "entity_ids": curves, "distance": distance}
	if along != nil {
		params["direction"] = *along
	}
	d.add(name, "solid.extrude", params)
	return name
}

func (d *drawing) boolean(operation, name string, solids ...string) string {
	d.add(name, "solid.boolean", map[string]any{"entity_id": name, "operation": operation, "entity_ids": solids})
	return name
}

// volumeNear is the check that all solids of a workspace are n, of a volume in mm³
// together to one percent, which is more than facets of curves ever take away.
func volumeNear(n int, volume float64) string {
	return fmt.Sprintf("size(solids) == %d && volume > %.1f && volume < %.1f", n, volume*0.99, volume*1.01)
}

func disc(radius float64) float64 { return math.Pi * radius * radius }

func modelled(id, agent, description string, d *drawing, solids int, volume float64) PlannedTask {
	return PlannedTask{TaskID: id, AgentID: agent, Brief: Brief{
		Description: description, Operations: d.steps, Check: volumeNear(solids, volume),
		SuccessCriteria: fmt.Sprintf("%d closed %s of %.1f cm³ in all", solids, plural(solids, "solid"), volume/1000),
	}}
}

// alone is the plan of one task, which makes one solid and exports it.
func alone(id, description string, d *drawing, volume float64) []PlannedTask {
	d.export(id)
	t := modelled(id, id+"_modeler", description, d, 1, volume)
	t.Check += " && size(files) == 2"
	return []PlannedTask{t}
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// merged is the task that brings the others together, looks for overlaps and
// exports the whole.
func merged(file string, solids int, parts []PlannedTask) PlannedTask {
	d := &drawing{}
	t := PlannedTask{TaskID: "merge", AgentID: "integrator", Brief: Brief{
		Description:     "Merge the parts, look for overlaps and export the whole",
		SuccessCriteria: fmt.Sprintf("%d solids, 0 conflicts, 0 interferences", solids),
		Check:           fmt.Sprintf("size(solids) == %d && conflicts == 0 && interferences == 0 && size(files) == 2", solids),
	}}
	for _, p := range parts {
		t.Dependencies = append(t.Dependencies, p.TaskID)
		d.add("merge_"+p.TaskID, "workspace.merge", map[string]any{
			"source_workspace_id": "${tasks." + p.TaskID + ".workspace_id}", "target_workspace_id": "${agent.workspace_id}",
		})
	}
	d.add("interference", "measure.interference", map[string]any{})
	d.export(file)
	t.Operations = d.steps
	return t
}

func (d *drawing) export(file string) {
	d.add("", "file.export", map[string]any{"file_path": file + ".step", "format": "STEP"})
	d.add("", "file.export", map[string]any{"file_path": file + ".stl", "format": "STL"})
}
