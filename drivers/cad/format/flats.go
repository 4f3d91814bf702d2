package format

import (
	"math"

	"swarmdeck/engine/cad/mesh"
)

// Triangles are of one plane when their normals turn by less than this (1 minus
// the cosine) and they lie no farther apart, in mm.
const (
	sameNormal = 1e-9
	sameHeight = 1e-4
)

// flats joins triangles to flat faces.
type flats struct {
	mesh    *mesh.Mesh
	parent  []int32
	largest []int32 // of a root: the triangle whose plane the face has
	area    []float64
	normal  [][3]float64
}

func newFlats(m *mesh.Mesh) *flats {
	n := len(m.Triangles)
	f := &flats{mesh: m, parent: make([]int32, n), largest: make([]int32, n), area: make([]float64, n), normal: make([][3]float64, n)}
	for i := range m.Triangles {
		a, b, c := m.Corners(i)
		across := mesh.Cross(mesh.Sub(b, a), mesh.Sub(c, a))
		f.parent[i], f.largest[i], f.area[i] = int32(i), int32(i), mesh.Length(across)
		if f.area[i] > 0 {
			f.normal[i] = mesh.Scale(across, 1/f.area[i])
		}
	}
	return f
}

func (f *flats) root(i int32) int32 {
	for f.parent[i] != i {
		f.parent[i] = f.parent[f.parent[i]]
		i = f.parent[i]
	}
	return i
}

// compare joins the faces of two neighbours when they are one.
func (f *flats) compare(i, j int32, planar bool) {
	a, b := f.root(i), f.root(j)
	if a == b {
		return
	}
	if planar {
		p, q := f.largest[a], f.largest[b]
		n := f.normal[p]
		off := mesh.Sub(f.mesh.Vertices[f.mesh.Triangles[q][0]], f.mesh.Vertices[f.mesh.Triangles[p][0]])
		if 1-mesh.Dot(n, f.normal[q]) > sameNormal || math.Abs(mesh.Dot(n, off)) > sameHeight {
			return
		}
	} else if faces := f.mesh.Faces; len(faces) == 0 || faces[i] != faces[j] {
		return
	}
	if b < a {
		a, b = b, a
	}
	f.parent[b] = a
	if f.area[f.largest[b]] > f.area[f.largest[a]] {
		f.largest[a] = f.largest[b]
	}
}
