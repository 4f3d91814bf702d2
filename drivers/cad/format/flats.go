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

// collinear is how far from a straight line, as a part of the lengths on it,
// points still count as on it.
const collinear = 1e-10

// flats joins triangles to flat faces.
type flats struct {
	mesh    *mesh.Mesh
	parent  []int32
	largest []int32 // of a root: the triangle whose plane the face has
	area    []float64
	longest []float64 // edge of each triangle
	normal  [][3]float64
}

func newFlats(m *mesh.Mesh) *flats {
	n := len(m.Triangles)
	f := &flats{mesh: m, parent: make([]int32, n), largest: make([]int32, n), area: make([]float64, n), longest: make([]float64, n), normal: make([][3]float64, n)}
	for i := range m.Triangles {
		a, b, c := m.Corners(i)
		across := mesh.Cross(mesh.Sub(b, a), mesh.Sub(c, a))
		f.parent[i], f.largest[i] = int32(i), int32(i)
		f.longest[i] = max(mesh.Length(mesh.Sub(a, b)), mesh.Length(mesh.Sub(b, c)), mesh.Length(mesh.Sub(c, a)))
		if area := mesh.Length(across); area > collinear*f.longest[i]*f.longest[i] {
			f.area[i], f.normal[i] = area, mesh.Scale(across, 1/area)
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

// compare joins the faces of two neighbours at an edge when they are one.
func (f *flats) compare(i, j int32, at mesh.Edge, planar bool) {
	a, b := f.root(i), f.root(j)
	switch {
	case a == b:
		return
	case !planar:
		if faces := f.mesh.Faces; len(faces) == 0 || faces[i] != faces[j] {
			return
		}
	case f.rims(i, at) || f.rims(j, at):
	default:
		p, q := f.largest[a], f.largest[b]
		n := f.normal[p]
		off := mesh.Sub(f.mesh.Vertices[f.mesh.Triangles[q][0]], f.mesh.Vertices[f.mesh.Triangles[p][0]])
		if 1-mesh.Dot(n, f.normal[q]) > sameNormal || math.Abs(mesh.Dot(n, off)) > sameHeight {
			return
		}
	}
	if b < a {
		a, b = b, a
	}
	f.parent[b] = a
	if f.area[f.largest[b]] > f.area[f.largest[a]] {
		f.largest[a] = f.largest[b]
	}
}

// rims says whether a triangle is of a face without area and has its longest
// edge here: then it only adds its third corner to this edge of its neighbour.
func (f *flats) rims(i int32, at mesh.Edge) bool {
	if f.area[f.largest[f.root(i)]] > 0 {
		return false
	}
	return mesh.Length(mesh.Sub(f.mesh.Vertices[at.To], f.mesh.Vertices[at.From])) >= f.longest[i]
}

// chains joins edges to lines as long as no third edge meets them. One that
// comes back to where it began has its first vertex last too.
func chains(edges []mesh.Edge) [][]uint32 {
	at := make(map[uint32][]int, len(edges))
	for i, e := range edges {
		at[e.From] = append(at[e.From], i)
		at[e.To] = append(at[e.To], i)
	}
	used := make([]bool, len(edges))
	follow := func(i int, from uint32) []uint32 {
		line := []uint32{from}
		for i >= 0 {
			used[i] = true
			from = edges[i].From + edges[i].To - from
			line = append(line, from)
			i = -1
			if next := at[from]; len(next) == 2 {
				for _, n := range next {
					if !used[n] {
						i = n
					}
				}
			}
		}
		return line
	}
	var out [][]uint32
	for i, e := range edges { // from their ends on
		for _, v := range []uint32{e.From, e.To} {
			if !used[i] && len(at[v]) != 2 {
				out = append(out, follow(i, v))
			}
		}
	}
	for i, e := range edges { // what is left has none
		if !used[i] {
			out = append(out, follow(i, e.From))
		}
	}
	return out
}
