package format_test

import (
	"slices"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/format"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/expect"
)

func TestCountTellsWhatASTEPFileHolds(t *testing.T) {
	for _, part := range append(shapes(t), tetrahedron()) {
		text := step(t, part)
		got := format.Count(part.Mesh)
		want := format.Topology{
			Faces: strings.Count(text, "=ADVANCED_FACE("), Edges: strings.Count(text, "=EDGE_CURVE("), Vertices: strings.Count(text, "=VERTEX_POINT("), Closed: true,
		}
		expect.Is(t, got, want, part.Name)
	}
}

func TestCountSeesThatASurfaceIsOpen(t *testing.T) {
	m := *tetrahedron().Mesh
	m.Triangles = m.Triangles[1:]
	expect.True(t, !format.Count(&m).Closed, "a hole is not seen")
	m = *tetrahedron().Mesh
	m.Triangles = slices.Clone(m.Triangles)
	slices.Reverse(m.Triangles[0][:])
	expect.True(t, !format.Count(&m).Closed, "a facet turned inside out is not seen")
	expect.Is(t, format.Count(&mesh.Mesh{}), format.Topology{Closed: true})
}
