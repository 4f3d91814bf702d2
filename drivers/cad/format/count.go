package format

import (
	"slices"

	"swarmdeck/engine/cad/mesh"
)

// Topology is what bounds a surface: its whole flat faces, the straight edges
// between them and their corners, as a STEP file would have them.
type Topology struct {
	Faces, Edges, Vertices int
	// Closed says that every edge has two triangles, once in each direction.
	Closed bool
}

// side is one edge of a triangle. Sorted by its ends, the two sides of an edge
// come together.
type side struct {
	ends     uint64 // the lower vertex, then the higher
	triangle int32
	upward   bool // from the lower to the higher
}

// Count tells the topology of a surface. It finds the same faces as a STEP
// file's, without their loops, and so costs a tenth.
func Count(m *mesh.Mesh) Topology {
	sides := make([]side, 0, 3*len(m.Triangles))
	for i, t := range m.Triangles {
		for j, from := range t {
			to := t[(j+1)%3]
			sides = append(sides, side{uint64(min(from, to))<<32 | uint64(max(from, to)), int32(i), from < to})
		}
	}
	slices.SortFunc(sides, func(a, b side) int {
		switch {
		case a.ends < b.ends:
			return -1
		case a.ends > b.ends:
			return 1
		}
		return int(a.triangle - b.triangle)
	})
	out := Topology{Closed: true}
	var edges [][2]side
	for i := 0; i < len(sides); {
		n := i + 1
		for n < len(sides) && sides[n].ends == sides[i].ends {
			n++
		}
		if n-i != 2 || sides[i].upward == sides[i+1].upward {
			out.Closed = false
		} else {
			edges = append(edges, [2]side{sides[i], sides[i+1]})
		}
		i = n
	}
	f := newFlats(m)
	for _, planar := range []bool{false, true} {
		for _, e := range edges {
			f.compare(e[0].triangle, e[1].triangle, mesh.Edge{From: uint32(e[0].ends >> 32), To: uint32(e[0].ends)}, planar)
		}
	}
	for i := range f.parent {
		if f.root(int32(i)) == int32(i) {
			out.Faces++
		}
	}
	edges = slices.DeleteFunc(edges, func(e [2]side) bool { return f.root(e[0].triangle) == f.root(e[1].triangle) })
	out.Edges, out.Vertices = corners(m, edges)
	return out
}

// corners counts edges and vertices, less those vertices that lie on a straight
// line between their only two neighbours.
func corners(m *mesh.Mesh, edges [][2]side) (edgeCount, vertices int) {
	degree := make([]uint8, len(m.Vertices))
	near := make([][2]uint32, len(m.Vertices))
	for _, e := range edges {
		a, b := uint32(e[0].ends>>32), uint32(e[0].ends)
		for _, v := range [][2]uint32{{a, b}, {b, a}} {
			if d := degree[v[0]]; d < 2 {
				near[v[0]][d] = v[1]
			}
			degree[v[0]] = min(degree[v[0]]+1, 3)
		}
	}
	edgeCount = len(edges)
	for v, d := range degree {
		if d == 0 {
			continue
		}
		vertices++
		if d != 2 {
			continue
		}
		a := mesh.Sub(m.Vertices[v], m.Vertices[near[v][0]])
		b := mesh.Sub(m.Vertices[near[v][1]], m.Vertices[v])
		if mesh.Length(mesh.Cross(a, b)) <= collinear*mesh.Length(a)*mesh.Length(b) && mesh.Dot(a, b) > 0 {
			edgeCount--
			vertices--
		}
	}
	return edgeCount, vertices
}
