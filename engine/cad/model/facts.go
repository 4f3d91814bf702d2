package model

import (
	"fmt"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// Facts is what a kernel measured of a solid, as its entity has them.
type Facts struct {
	Volume   float64    `json:"volume"`       // mm³
	Area     float64    `json:"surface_area"` // mm²
	Center   [3]float64 `json:"center_of_mass"`
	Bounds   mesh.Box   `json:"bounding_box"`
	Topology Topology   `json:"topology"`
	// Tolerance is how far facets stay from the true surface, in mm; 0 when exact.
	Tolerance float64 `json:"tolerance"`
	Operation string  `json:"operation,omitempty"` // of its shape: extrude, union …
}

// Topology counts what bounds a solid.
type Topology struct {
	Faces    int  `json:"face_count"`
	Edges    int  `json:"edge_count"`
	Vertices int  `json:"vertex_count"`
	Closed   bool `json:"is_closed"`
	Manifold bool `json:"is_manifold"`
}

// FactsOf reads the properties of a solid.
func FactsOf(solid Entity) (f Facts, err error) {
	if err := core.DecodeStored(solid.Properties, &f); err != nil {
		return Facts{}, fmt.Errorf("read a solid's properties: %w", err)
	}
	return f, nil
}

// Valid says whether the surface closes a body.
func (f Facts) Valid() bool { return f.Topology.Closed && f.Topology.Manifold && f.Volume > 0 }

// Validity is Valid in words.
func (f Facts) Validity() string {
	switch {
	case f.Valid():
		return "closed and manifold"
	case !f.Topology.Closed:
		return "not closed"
	case !f.Topology.Manifold:
		return "not manifold"
	}
	return "without volume"
}
