package env

import (
	"context"
	"fmt"

	"swarmdeck/engine/cad/mesh"
)

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
	deflection := standardDetail
	if p.Deflection != nil {
		deflection = *p.Deflection
	}
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
