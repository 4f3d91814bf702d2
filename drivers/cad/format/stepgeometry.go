package format

import (
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// stepGeometry writes the solids of one part; points, vertices and edges are
// written once and shared.
type stepGeometry struct {
	*stepWriter
	mesh     *mesh.Mesh
	points   map[uint32]int
	vertices map[uint32]int
	edges    map[mesh.Edge]int // from the lower vertex to the higher
}

func (g *stepGeometry) solid(name string, s stepSolid) int {
	outer := g.shell(s.shells[0])
	if len(s.shells) == 1 {
		return g.add("MANIFOLD_SOLID_BREP(%s,#%d)", name, outer)
	}
	var voids []int
	for _, v := range s.shells[1:] {
		// Its faces look into the void already, away from the material.
		voids = append(voids, g.add("ORIENTED_CLOSED_SHELL('',*,#%d,.T.)", g.shell(v)))
	}
	return g.add("BREP_WITH_VOIDS(%s,#%d,(%s))", name, outer, references(voids))
}

func (g *stepGeometry) shell(all []face) int {
	ids := core.Map(all, g.face)
	return g.add("CLOSED_SHELL('',(%s))", references(ids))
}

func (g *stepGeometry) face(f face) int {
	var bounds []int
	for i, l := range f.loops {
		kind := "FACE_BOUND"
		if i == 0 {
			kind = "FACE_OUTER_BOUND"
		}
		bounds = append(bounds, g.add("%s('',#%d,.T.)", kind, g.loop(l)))
	}
	plane := g.add("PLANE('',#%d)", g.placement(f.origin, f.normal, square(f.normal)))
	return g.add("ADVANCED_FACE('',(%s),#%d,.T.)", references(bounds), plane)
}

func (g *stepGeometry) loop(l []uint32) int {
	edges := make([]int, len(l))
	for i, from := range l {
		to := l[(i+1)%len(l)]
		low, sense := mesh.Edge{From: from, To: to}, ".T."
		if from > to {
			low, sense = low.Back(), ".F."
		}
		edges[i] = g.add("ORIENTED_EDGE('',*,*,#%d,%s)", g.edge(low), sense)
	}
	return g.add("EDGE_LOOP('',(%s))", references(edges))
}

func (g *stepGeometry) edge(e mesh.Edge) int {
	if id, ok := g.edges[e]; ok {
		return id
	}
	way := mesh.Sub(g.mesh.Vertices[e.To], g.mesh.Vertices[e.From])
	length := mesh.Length(way)
	from, to := g.vertex(e.From), g.vertex(e.To)
	direction := g.add("DIRECTION('',(%s))", stepTriple(mesh.Scale(way, 1/length)))
	vector := g.add("VECTOR('',#%d,1.)", direction)
	line := g.add("LINE('',#%d,#%d)", g.points[e.From], vector)
	id := g.add("EDGE_CURVE('',#%d,#%d,#%d,.T.)", from, to, line)
	g.edges[e] = id
	return id
}

func (g *stepGeometry) vertex(v uint32) int {
	if id, ok := g.vertices[v]; ok {
		return id
	}
	g.points[v] = g.add("CARTESIAN_POINT('',(%s))", stepTriple(g.mesh.Vertices[v]))
	id := g.add("VERTEX_POINT('',#%d)", g.points[v])
	g.vertices[v] = id
	return id
}
