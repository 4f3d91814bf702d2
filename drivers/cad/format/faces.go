package format

import (
	"fmt"
	"math"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// face is one flat face with its loops of vertices, the outer one first.
type face struct {
	origin, normal [3]float64
	loops          [][]uint32
}

// faces joins the triangles of a shell to whole flat faces, first by their
// provenance and then where neighbours are coplanar, and follows the loops
// around them.
func faces(g *groups, shell []int) ([]face, error) {
	for _, planar := range []bool{false, true} {
		for _, i := range shell {
			t := g.mesh.Triangles[i]
			for j, from := range t {
				back := mesh.Edge{From: t[(j+1)%3], To: from}
				if n := g.owner[back]; n > i {
					g.compare(int32(i), int32(n), back, planar)
				}
			}
		}
	}
	out, err := g.loops(shell)
	if err != nil {
		return nil, err
	}
	straighten(g.mesh, out)
	for i := range out {
		out[i].outerFirst(g.mesh)
	}
	return out, nil
}

// noFaces refuses a surface of which no whole faces can be made.
func noFaces(format string, args ...any) error {
	return core.Invalid("entity_ids", fmt.Sprintf(format, args...), "solids of flat faces that meet in edges; another format takes any")
}

// groups are the faces of a surface with the triangle at each edge.
type groups struct {
	*flats

	owner map[mesh.Edge]int
}

// loops follows the edges between different groups. At the end of an edge it
// turns about the vertex inside the face, so that faces which meet themselves
// at a point keep their loops apart.
func (g *groups) loops(shell []int) ([]face, error) {
	number := map[int32]int{}
	var out []face
	done := map[mesh.Edge]bool{}
	outside := func(e mesh.Edge) bool { return g.root(int32(g.owner[e])) != g.root(int32(g.owner[e.Back()])) }
	for _, i := range shell {
		t := g.mesh.Triangles[i]
		for j, from := range t {
			first := mesh.Edge{From: from, To: t[(j+1)%3]}
			if done[first] || !outside(first) {
				continue
			}
			var loop []uint32
			for e := first; !done[e]; {
				done[e] = true
				loop = append(loop, e.From)
				for e = g.after(g.owner[e], e); !outside(e); {
					e = g.after(g.owner[e.Back()], e.Back())
				}
			}
			root := g.root(int32(i))
			n, ok := number[root]
			if !ok {
				n = len(out)
				number[root] = n
				l := g.largest[root]
				if g.area[l] == 0 {
					return nil, noFaces("triangle %d belongs to a face without an area", i)
				}
				out = append(out, face{origin: g.mesh.Vertices[g.mesh.Triangles[l][0]], normal: g.normal[l]})
			}
			out[n].loops = append(out[n].loops, loop)
		}
	}
	for _, i := range shell {
		if _, ok := number[g.root(int32(i))]; !ok {
			return nil, noFaces("triangle %d belongs to a face without an edge", i)
		}
	}
	return out, nil
}

// after is the edge that follows another around a triangle.
func (g *groups) after(triangle int, e mesh.Edge) mesh.Edge {
	t := g.mesh.Triangles[triangle]
	for j, v := range t {
		if v == e.To {
			return mesh.Edge{From: v, To: t[(j+1)%3]}
		}
	}
	return e
}

// straighten drops the vertices on a straight line between their only two
// neighbours, from every loop alike.
func straighten(m *mesh.Mesh, all []face) {
	neighbours := map[uint32]map[uint32]bool{}
	each := func(do func(before, v, after uint32)) {
		for _, f := range all {
			for _, l := range f.loops {
				for i, v := range l {
					do(l[(i+len(l)-1)%len(l)], v, l[(i+1)%len(l)])
				}
			}
		}
	}
	each(func(before, v, after uint32) {
		if neighbours[v] == nil {
			neighbours[v] = map[uint32]bool{}
		}
		neighbours[v][before], neighbours[v][after] = true, true
	})
	drop := map[uint32]bool{}
	each(func(before, v, after uint32) {
		if len(neighbours[v]) != 2 || before == after {
			return
		}
		a, b := mesh.Sub(m.Vertices[v], m.Vertices[before]), mesh.Sub(m.Vertices[after], m.Vertices[v])
		lengths := mesh.Length(a) * mesh.Length(b)
		if mesh.Length(mesh.Cross(a, b)) <= collinear*lengths && mesh.Dot(a, b) > 0 {
			drop[v] = true
		}
	})
	for i := range all {
		for j, l := range all[i].loops {
			kept := core.Where(l, func(v uint32) bool { return !drop[v] })
			all[i].loops[j] = kept
		}
	}
}

// outerFirst puts the loop with the largest area about the normal first.
func (f *face) outerFirst(m *mesh.Mesh) {
	best, most := 0, math.Inf(-1)
	for i, l := range f.loops {
		area := 0.0
		for j := 1; j+1 < len(l); j++ {
			a := m.Vertices[l[0]]
			area += mesh.Dot(f.normal, mesh.Cross(mesh.Sub(m.Vertices[l[j]], a), mesh.Sub(m.Vertices[l[j+1]], a)))
		}
		if area > most {
			best, most = i, area
		}
	}
	f.loops[0], f.loops[best] = f.loops[best], f.loops[0]
}

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
