package solid

import (
	"math"
	"strconv"

	"swarmdeck/engine/cad"
	"swarmdeck/ui/screen"
)

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
