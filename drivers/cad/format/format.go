// Package format writes solids to files that other tools open, and reads those
// it can: STEP AP214, 3MF, binary STL, SVG and JSON out, JSON and STL in.
//
// A part is a closed surface of flat facets. Every file says how far they are
// from the true shape, as far as its format has a place for it; no writer makes
// curves up. Writers check each part and write nothing when one is no solid;
// they leave out dates, so the same parts give the same bytes. Readers trust no
// count in a file, and answer closed surfaces only.
package format

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// Limits of one file.
const (
	MaxParts = 1000
	MaxBytes = 128 << 20 // which whoever reads files sees to
)

// Part is one solid of a file.
type Part struct {
	Name      string
	Mesh      *mesh.Mesh
	Tolerance float64 // mm between facets and the true shape; 0 when all is flat
}

// check refuses parts that no file shall carry.
func check(parts []Part) error {
	if len(parts) == 0 || len(parts) > MaxParts {
		return core.Invalid("entity_ids", fmt.Sprintf("%d parts", len(parts)), fmt.Sprintf("1 to %d solids", MaxParts))
	}
	triangles := 0
	for i, p := range parts {
		if err := p.check(); err != nil {
			return fmt.Errorf("part %d: %w", i+1, err)
		}
		if triangles += len(p.Mesh.Triangles); triangles > mesh.MaxTriangles {
			return core.Invalid("entity_ids", fmt.Sprintf("%d triangles", triangles), fmt.Sprintf("at most %d in one file", mesh.MaxTriangles))
		}
	}
	return nil
}

func (p Part) check() error {
	if p.Name == "" || len(p.Name) > 200 || !utf8.ValidString(p.Name) {
		return core.Invalid("name", p.Name, "1 to 200 bytes of UTF-8")
	}
	if !(p.Tolerance >= 0 && p.Tolerance <= 10) {
		return core.Invalid("tolerance", p.Tolerance, "0 to 10 mm")
	}
	if p.Mesh == nil {
		return core.Invalid("mesh", nil, "a closed surface")
	}
	return p.Mesh.Check()
}

// coarsest is the largest tolerance of the parts.
func coarsest(parts []Part) float64 {
	out := 0.0
	for _, p := range parts {
		out = math.Max(out, p.Tolerance)
	}
	return out
}

// decimal is a number in the fewest digits that read back the same.
func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// short is a number of single precision in the fewest digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', -1, 32) }
