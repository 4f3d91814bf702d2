package cad

import (
	"fmt"
	"math"
	"strings"

	"swarmdeck/engine/core"
)

// drawing is the operations that make a part. The roles that model allow no arcs,
// so what is round is made of circles.
type drawing struct{ steps []Step }

func (d *drawing) add(id, method string, params map[string]any) {
	d.steps = append(d.steps, Step{ID: id, Method: method, Params: core.MustEncode(params)})
}

type spot [3]float64

func (s spot) exact() spot { return spot{exact(s[0]), exact(s[1]), exact(s[2])} }

// loop draws the lines of a closed polygon and returns their ids.
func (d *drawing) loop(name string, corners ...spot) []string {
	ids := make([]string, len(corners))
	for i, at := range corners {
		ids[i] = fmt.Sprintf("%s_%d", name, i+1)
		d.add("", "entity.create_line", map[string]any{"entity_id": ids[i], "start": at.exact(), "end": corners[(i+1)%len(corners)].exact()})
	}
	return ids
}

func (d *drawing) rectangle(name string, x0, y0, x1, y1, z float64) []string {
	return d.loop(name, spot{x0, y0, z}, spot{x1, y0, z}, spot{x1, y1, z}, spot{x0, y1, z})
}

func (d *drawing) circle(name string, x, y, z, radius float64) []string {
	d.add("", "entity.create_circle", map[string]any{"entity_id": name, "center": spot{x, y, z}.exact(), "radius": exact(radius)})
	return []string{name}
}

// extrude makes a solid of curves; along is nil for their plane's normal.
func (d *drawing) extrude(name string, curves []string, distance float64, along *spot) string {
	params := map[string]any{"entity_id": name, "entity_ids": curves, "distance": exact(distance)}
	if along != nil {
		params["direction"] = *along
	}
	d.add(name, "solid.extrude", params)
	return name
}

// box2 is a rectangle from x0, y0 to x1, y1.
type box2 struct{ x0, y0, x1, y1 float64 }

// prism raises a rectangle from z, its upright corners rounded.
func (d *drawing) prism(name string, b box2, z, height, radius float64) string {
	if radius == 0 {
		return d.extrude(name, d.rectangle(name+"_outline", b.x0, b.y0, b.x1, b.y1, z), height, nil)
	}
	across, along := name+"_across", name+"_along"
	solids := []string{
		d.extrude(across, d.rectangle(across+"_outline", b.x0+radius, b.y0, b.x1-radius, b.y1, z), height, nil),
		d.extrude(along, d.rectangle(along+"_outline", b.x0, b.y0+radius, b.x1, b.y1-radius, z), height, nil),
	}
	for i, at := range []spot{{b.x0 + radius, b.y0 + radius}, {b.x1 - radius, b.y0 + radius}, {b.x1 - radius, b.y1 - radius}, {b.x0 + radius, b.y1 - radius}} {
		corner := fmt.Sprintf("%s_corner_%d", name, i+1)
		solids = append(solids, d.extrude(corner, d.circle(corner+"_outline", at[0], at[1], z, radius), height, nil))
	}
	return d.boolean("union", name, solids...)
}

// rounded is the area of a rectangle with rounded corners.
func rounded(x, y, radius float64) float64 { return x*y - (4-math.Pi)*radius*radius }

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

func toldSize(size []float64) string {
	var all []string
	for _, v := range size {
		all = append(all, mm(v))
	}
	return strings.Join(all, "x")
}

func toldCorner(radius float64) string {
	if radius == 0 {
		return ""
	}
	return ", corner radius " + mm(radius) + " mm"
}
