package solid

import (
	"fmt"
	"math"
	"strconv"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
	"swarmdeck/ui/screen"
)

// Facts are what a kernel measured of a solid, as its entity has them.
type Facts struct {
	Volume   float64    `json:"volume"`       // mm³
	Area     float64    `json:"surface_area"` // mm²
	Center   [3]float64 `json:"center_of_mass"`
	Bounds   Bounds     `json:"bounding_box"`
	Topology struct {
		Faces    int  `json:"face_count"`
		Edges    int  `json:"edge_count"`
		Vertices int  `json:"vertex_count"`
		Closed   bool `json:"is_closed"`
		Manifold bool `json:"is_manifold"`
	} `json:"topology"`
	Tolerance float64 `json:"tolerance"` // mm; 0 is exact
	Operation string  `json:"operation,omitempty"`
}

// Bounds is an axis-parallel box.
type Bounds struct {
	Min [3]float64 `json:"min"`
	Max [3]float64 `json:"max"`
}

// ReadFacts reads a solid's properties.
func ReadFacts(properties core.Raw) (Facts, error) {
	var f Facts
	if err := core.DecodeStored(properties, &f); err != nil {
		return Facts{}, fmt.Errorf("read a solid's properties: %w", err)
	}
	return f, nil
}

// Size is the extent of the box along each axis, in mm.
func (f Facts) Size() [3]float64 { return mesh.Sub(f.Bounds.Max, f.Bounds.Min) }

// Mass is grams of a material of a density in g/cm³.
func (f Facts) Mass(density float64) float64 { return f.Volume / 1000 * density }

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

// Extent writes a size out, such as "100 x 80 x 20 mm".
func Extent(size [3]float64) string {
	return Number(size[0]) + " x " + Number(size[1]) + " x " + Number(size[2]) + " mm"
}

// Number writes a measure out with six digits at most.
func Number(v float64) string {
	if math.Abs(v) < 1e-9 {
		return "0"
	}
	if a := math.Abs(v); a >= 1e6 && a < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// Short writes a measure out with three digits, where more would say nothing.
func Short(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// partRoles are the colours of parts, one after the other. None says good or
// bad.
var partRoles = [...]screen.Role{screen.Accent, screen.Marked, screen.Busy, screen.Title}

// PartRole is the colour of a part, numbered from 1.
func PartRole(part int) screen.Role { return partRoles[(part-1+len(partRoles))%len(partRoles)] }

// OfSurfaces is the scene of solids as they lie.
func OfSurfaces(all []cad.Surface) *Scene {
	parts := make([]Part, len(all))
	for i, s := range all {
		parts[i] = Part{Name: s.EntityID, Mesh: s.Mesh, Role: PartRole(i + 1)}
	}
	return New(parts)
}

// Compare is the scene of what changed between two states.
func Compare(before, after []cad.Surface) *Scene {
	var parts []Part
	for _, s := range before {
		parts = append(parts, Part{Name: s.EntityID, Mesh: s.Mesh, Side: Before})
	}
	for _, s := range after {
		parts = append(parts, Part{Name: s.EntityID, Mesh: s.Mesh, Side: After})
	}
	return New(parts)
}
