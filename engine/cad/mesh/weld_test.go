package mesh_test

import (
	"slices"
	"testing"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/expect"
)

// split puts a vertex on an edge of every two triangles that share it.
func split(m *mesh.Mesh, from, to uint32, at [3]float64) {
	v := uint32(len(m.Vertices))
	m.Vertices = append(m.Vertices, at)
	for i, t := range slices.Clone(m.Triangles) {
		for j, a := range t {
			b, c := t[(j+1)%3], t[(j+2)%3]
			if a == from && b == to || a == to && b == from {
				m.Triangles[i] = [3]uint32{a, v, c}
				m.Triangles = append(m.Triangles, [3]uint32{v, b, c})
				m.Faces = append(m.Faces, m.Faces[i])
			}
		}
	}
}

func TestWeldedJoinsTheEndsOfEdgesWithoutLength(t *testing.T) {
	m := cuboid([3]float64{}, [3]float64{1, 2, 3})
	split(m, 0, 1, m.Vertices[0])
	split(m, 0, 8, m.Vertices[0]) // one more in the same place
	err := m.Check()
	expect.Must(t, err == nil && len(m.Vertices) == 10 && len(m.Triangles) == 16, "%v %v %v", len(m.Vertices), len(m.Triangles), err)
	got := m.Welded()
	if err := got.Check(); err != nil || len(got.Vertices) != 8 || len(got.Triangles) != 12 || len(got.Faces) != 12 {
		t.Errorf("%d vertices, %d triangles, %d faces, %v", len(got.Vertices), len(got.Triangles), len(got.Faces), err)
	}
	near(t, "volume", got.Properties().Volume, 6)
}

func TestWeldedLeavesOutWhatLiesBackToBack(t *testing.T) {
	m := cuboid([3]float64{}, [3]float64{1, 2, 3})
	m.Faces = nil
	prism := uint32(len(m.Vertices)) // without height
	for range 2 {
		m.Vertices = append(m.Vertices, [3]float64{5, 0, 0}, [3]float64{6, 0, 0}, [3]float64{5, 1, 0})
	}
	for _, p := range [][3]uint32{{0, 2, 1}, {3, 4, 5}, {0, 1, 4}, {0, 4, 3}, {1, 2, 5}, {1, 5, 4}, {2, 0, 3}, {2, 3, 5}} {
		m.Triangles = append(m.Triangles, [3]uint32{prism + p[0], prism + p[1], prism + p[2]})
	}
	expect.No(t, m.Check())
	got := m.Welded()
	err := got.Check()
	expect.True(t, err == nil && len(got.Triangles) == 12, "%d triangles, %v", len(got.Triangles), err)
}

func TestWeldedKeepsANeckThatWouldPinch(t *testing.T) {
	// Two bodies joined by a neck of the corners 0, 1 and 2, of which two are in
	// one place: as one they would leave an edge with four triangles.
	m := &mesh.Mesh{
		Vertices: [][3]float64{{0, 0, 0}, {0, 0, 0}, {1, 0, 0}, {-1, 0, 1}, {0.5, -1, 1}, {0.5, 1, 1}, {-1, 0, -1}, {0.5, -1, -1}, {0.5, 1, -1}},
		Triangles: [][3]uint32{
			{0, 1, 3},
			{1, 4, 3},
			{1, 2, 4},
			{2, 5, 4},
			{2, 0, 5},
			{0, 3, 5},
			{3, 4, 5},
			{1, 0, 6},
			{1, 6, 7},
			{2, 1, 7},
			{2, 7, 8},
			{0, 2, 8},
			{0, 8, 6},
			{6, 8, 7},
		},
	}
	expect.No(t, m.Check())
	if got := m.Welded(); got != m {
		t.Error(got.Check())
	}
}

func TestWeldedLetsSolidsTouch(t *testing.T) {
	m := cuboid([3]float64{}, [3]float64{1, 1, 1})
	other := cuboid([3]float64{1, 1, 0}, [3]float64{1, 1, 1}) // corner to corner, along an edge
	for _, c := range other.Triangles {
		m.Triangles = append(m.Triangles, [3]uint32{8 + c[0], 8 + c[1], 8 + c[2]})
	}
	m.Vertices = append(m.Vertices, other.Vertices...)
	m.Faces = nil
	if got := m.Welded(); got != m {
		t.Errorf("%d vertices, want all %d", len(got.Vertices), len(m.Vertices))
	}
}
