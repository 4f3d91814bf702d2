package cad

import (
	"fmt"
	"math"

	"swarmdeck/engine/core"
)

// drawing collects the operations of one task.
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

// rectangle draws one from a corner to another at a height.
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

// modelled is the task of one modeler.
func modelled(id, agent, description string, d *drawing, solids int, volume float64) PlannedTask {
	return PlannedTask{TaskID: id, AgentID: agent, Brief: Brief{
		Description: description, Operations: d.steps, Check: volumeNear(solids, volume),
		SuccessCriteria: fmt.Sprintf("%d closed %s of %.1f cm³ in all", solids, plural(solids, "solid"), volume/1000),
	}}
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
