package cad

import (
	"fmt"
	"math"
	"slices"

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

// prism raises a rectangle from z.
func (d *drawing) prism(name string, x0, y0, x1, y1, z, height float64) string {
	return d.extrude(name, d.rectangle(name+"_outline", x0, y0, x1, y1, z), height, nil)
}

func (d *drawing) cylinder(name string, x, y, z, radius, height float64) string {
	return d.extrude(name, d.circle(name+"_outline", x, y, z, radius), height, nil)
}

// drilled is the plan of an outline that is raised with round holes: x, y and radius.
func drilled(name, about string, d *drawing, outline []string, height, volume float64, holes []spot) []PlannedTask {
	for i, h := range holes {
		outline = append(outline, d.circle(fmt.Sprintf("hole_%d", i+1), h[0], h[1], 0, h[2])...)
		volume -= disc(h[2]) * height
	}
	d.extrude(name, outline, height, nil)
	return alone(name, about, d, volume)
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

// seatsOf are the agents that the tasks of a plan name, each with a workspace of its own.
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
