package env

import (
	"context"
	"fmt"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

type measureMass struct {
	EntityID string   `json:"entity_id" need:""`
	Density  *float64 `json:"density" is:"g/cm³; 1 where nothing is given"`
}

func (p measureMass) check() error {
	if d := given(p.Density, 1); !(d > 0 && d <= 100) {
		return Invalid("density", d, "above 0, up to 100 g/cm³")
	}
	return nil
}

// mass is what measure.mass answers.
type mass struct {
	EntityID string `json:"entity_id"`
	model.Facts
	Density float64 `json:"density"` // g/cm³
	Mass    float64 `json:"mass"`    // g
	Inertia Inertia `json:"inertia"` // g·mm² about the centre
}

func (c *call) measureMass(p measureMass) (any, error) {
	e, err := c.solid("entity_id", p.EntityID)
	if err != nil {
		return nil, err
	}
	out := mass{EntityID: e.ID, Density: given(p.Density, 1)}
	err = c.env.bench.made(c.ctx, in(c.ws), []string{e.Shape}, func(ctx context.Context, k Kernel) (err error) {
		out.Facts, out.Inertia, err = k.Measure(ctx, e.Shape)
		return err
	})
	if err != nil {
		return nil, err
	}
	perVolume := out.Density / 1000 // g/mm³
	out.Mass = perVolume * out.Volume
	for i, row := range out.Inertia {
		out.Inertia[i] = mesh.Scale(row, perVolume)
	}
	return out, nil
}

type some struct {
	EntityID  string   `json:"entity_id"`
	EntityIDs []string `json:"entity_ids"`
}

// solids are those named, or all of the workspace where none is.
func (c *call) solids(id string, ids []string) ([]model.Entity, error) {
	if id == "" && ids == nil {
		all, _ := c.ws.Entities(model.Filter{Type: model.Solid})
		return all, nil
	}
	names, err := one(id, ids)
	if err != nil {
		return nil, err
	}
	var out []model.Entity
	seen := map[string]bool{}
	for _, name := range names {
		e, err := c.solid("entity_ids", name)
		if err != nil {
			return nil, err
		}
		if !seen[name] {
			out = append(out, e)
		}
		seen[name] = true
	}
	return out, nil
}

// measureBounds is the box around solids; all where none is named.
func (c *call) measureBounds(p some) (any, error) {
	all, err := c.solids(p.EntityID, p.EntityIDs)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, Refuse(OperationInvalid, "entity_id", nil, "there is no solid", "make one first")
	}
	var around mesh.Box
	for i, e := range all {
		b := measured(e).Bounds
		if i == 0 {
			around = b
		}
		for axis := range 3 {
			around.Min[axis] = min(around.Min[axis], b.Min[axis])
			around.Max[axis] = max(around.Max[axis], b.Max[axis])
		}
	}
	return map[string]any{"entity_ids": idsOf(all), "min": around.Min, "max": around.Max, "size": around.Size(), "bounding_box": around}, nil
}

// overlap is what two bodies share; nil when they are apart or touch.
func (c *call) overlap(find recipes, a, b string) (*Overlap, error) {
	if b < a {
		a, b = b, a
	}
	known := c.env.bench.overlaps
	if o, ok := known[[2]string{a, b}]; ok {
		return o, nil
	}
	var o *Overlap
	err := c.env.bench.made(c.ctx, find, []string{a, b}, func(ctx context.Context, k Kernel) (err error) {
		o, err = k.Overlap(ctx, a, b)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(known) >= maxOverlaps {
		clear(known)
	}
	known[[2]string{a, b}] = o
	return o, nil
}

const (
	// maxOverlaps bounds how many pairs of bodies are remembered.
	maxOverlaps = 50_000
	// touching is the volume in mm³ up to which solids only touch (requirement 6.4).
	touching = 1e-6
)

// pair is two solids that overlap.
type pair struct {
	EntityIDs [2]string `json:"entity_ids"`
	Overlap
}

// interference looks at each pair of solids whose boxes share room.
func (c *call) interference(p some) (any, error) {
	all, err := c.solids(p.EntityID, p.EntityIDs)
	if err != nil {
		return nil, err
	}
	boxes := core.Map(all, func(e model.Entity) mesh.Box { return measured(e).Bounds })
	found, checked := []pair{}, 0
	for i, a := range all {
		c.stage.at(100*float64(i)/float64(len(all)), "comparing solids")
		for j := i + 1; j < len(all); j++ {
			checked++
			if boxes[i].Shared(boxes[j]) <= touching {
				continue
			}
			o, err := c.overlap(in(c.ws), a.Shape, all[j].Shape)
			if err != nil {
				return nil, err
			}
			if o != nil {
				found = append(found, pair{[2]string{a.ID, all[j].ID}, *o})
			}
		}
	}
	return map[string]any{
		"interferences": found, "interference_count": len(found), "checked_pairs": checked,
		"entity_ids": idsOf(all), "workspace_id": c.ws.Record().ID,
	}, nil
}

type measureDistance struct {
	EntityIDs []string `json:"entity_ids" need:"" is:"two solids, or two places"`
}

func (p measureDistance) check() error {
	if len(p.EntityIDs) != 2 {
		return Invalid("entity_ids", len(p.EntityIDs), "two solids, or two points, LINE.start, CIRCLE.center …")
	}
	return nil
}

func (c *call) measureDistance(p measureDistance) (any, error) {
	var solids []model.Entity
	for _, ref := range p.EntityIDs {
		if e, ok := c.ws.Entity(ref); ok && e.Type == model.Solid {
			solids = append(solids, e)
		}
	}
	if len(solids) == 0 {
		var at [2][3]float64
		for i, ref := range p.EntityIDs {
			var err error
			if at[i], err = c.where("entity_ids", Place{Ref: ref}); err != nil {
				return nil, err
			}
		}
		return map[string]any{"entity_ids": p.EntityIDs, "distance": mesh.Length(mesh.Sub(at[1], at[0]))}, nil
	}
	if len(solids) == 1 {
		return nil, Refuse(OperationInvalid, "entity_ids", fmt.Sprint(p.EntityIDs), "a solid and a place have no distance here", "give two solids or two places")
	}
	var d float64
	err := c.env.bench.made(c.ctx, in(c.ws), []string{solids[0].Shape, solids[1].Shape}, func(ctx context.Context, k Kernel) (err error) {
		d, err = k.Distance(ctx, solids[0].Shape, solids[1].Shape)
		return err
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"entity_ids": p.EntityIDs, "distance": d}, nil
}

// Limits of one view.
const (
	maxViewed      = 100_000 // triangles, some 5 MB of JSON
	standardDetail = 0.1     // mm
)

type viewMesh struct {
	EntityID   string   `json:"entity_id"`
	EntityIDs  []string `json:"entity_ids"` // all solids where none is named
	Deflection *float64 `json:"deflection"` // mm; 0.1 where nothing is given
}

// view is the surface of one solid.
type view struct {
	EntityID string `json:"entity_id"`
	mesh.Mesh
	Tolerance float64 `json:"tolerance"` // mm
}

func (c *call) viewMesh(p viewMesh) (any, error) {
	deflection := given(p.Deflection, standardDetail)
	if !(deflection >= 0.001 && deflection <= 100) {
		return nil, Invalid("deflection", deflection, "0.001 to 100 mm")
	}
	all, err := c.solids(p.EntityID, p.EntityIDs)
	if err != nil {
		return nil, err
	}
	list, triangles := []view{}, 0
	for i, e := range all {
		c.stage.at(100*float64(i)/float64(len(all)), "meshing")
		var m *mesh.Mesh
		var kept float64
		err := c.env.bench.made(c.ctx, in(c.ws), []string{e.Shape}, func(ctx context.Context, k Kernel) (err error) {
			m, kept, err = k.Mesh(ctx, []string{e.Shape}, deflection, 0)
			return err
		})
		if err != nil {
			return nil, err
		}
		if triangles += len(m.Triangles); triangles > maxViewed {
			return nil, Refuse(OperationInvalid, "entity_ids", len(all), fmt.Sprintf("these solids have more than %d triangles", maxViewed), "name fewer solids, or give a coarser deflection")
		}
		list = append(list, view{e.ID, *m, kept})
	}
	return map[string]any{"solids": list, "triangle_count": triangles, "workspace_id": c.ws.Record().ID}, nil
}
