package format

import (
	"fmt"
	"math"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// Many readers make one corner of those that are equal in single precision.
// Where a surface touches itself along an edge they then find four triangles
// at it, and no solid. distinct draws such places back by less than any
// tolerance.

const (
	leastStep = 1e-5 // mm
	pace      = 5e-7 // of a coordinate: some steps of its single precision
	patience  = 4    // rounds, each of twice the step
)

// distinct answers surfaces in single precision of which a reader finds each
// edge between two triangles, however it joins equal corners of them all.
// Triangles that single precision makes lines of are gone.
func distinct(surfaces ...*mesh.Mesh) ([]*mesh.Mesh, error) {
	var all mesh.Mesh
	var single []*mesh.Mesh
	for _, m := range surfaces {
		m = inSingle(m)
		single = append(single, m)
		first := uint32(len(all.Vertices))
		all.Vertices = append(all.Vertices, m.Vertices...)
		for _, t := range m.Triangles {
			all.Triangles = append(all.Triangles, [3]uint32{first + t[0], first + t[1], first + t[2]})
		}
	}
	same, crowded := meetings(&all)
	for round := 0; len(crowded) > 0; round++ {
		if round == patience {
			return nil, core.Invalid("entity_ids", "a solid that touches itself", "solids with edges that single precision tells apart; another format, or fewer solids to the file")
		}
		drawBack(&all, same, crowded, math.Ldexp(1, round))
		same, crowded = meetings(&all)
	}
	var out []*mesh.Mesh
	first := 0
	for _, m := range single {
		moved := mesh.Mesh{Vertices: all.Vertices[first : first+len(m.Vertices)], Triangles: m.Triangles}
		first += len(m.Vertices)
		out = append(out, moved.Welded())
	}
	return out, nil
}

// inSingle is a surface in single precision.
func inSingle(m *mesh.Mesh) *mesh.Mesh {
	out := mesh.Mesh{Vertices: make([][3]float64, len(m.Vertices)), Triangles: m.Triangles}
	for i, v := range m.Vertices {
		out.Vertices[i] = rounded(v)
	}
	return out.Welded()
}

// rounded is a point in single precision.
func rounded(v [3]float64) [3]float64 {
	for i, x := range v {
		v[i] = float64(float32(x)) + 0 // one zero
	}
	return v
}

// meetings numbers equal vertices alike and finds those at the ends of edges
// that more than two triangles share.
func meetings(m *mesh.Mesh) (same []uint32, crowded map[uint32]bool) {
	number := make(map[[3]float64]uint32, len(m.Vertices))
	same = make([]uint32, len(m.Vertices))
	for i, v := range m.Vertices {
		n, ok := number[v]
		if !ok {
			n = uint32(len(number))
			number[v] = n
		}
		same[i] = n
	}
	crowded = map[uint32]bool{}
	used := make(map[mesh.Edge]bool, 3*len(m.Triangles))
	for _, t := range m.Triangles {
		a, b, c := same[t[0]], same[t[1]], same[t[2]]
		if a == b || b == c || c == a {
			continue
		}
		for _, e := range [...]mesh.Edge{{From: a, To: b}, {From: b, To: c}, {From: c, To: a}} {
			if used[e] {
				crowded[e.From], crowded[e.To] = true, true
			}
			used[e] = true
		}
	}
	return same, crowded
}

// drawBack moves crowded vertices into their own solid.
func drawBack(m *mesh.Mesh, same []uint32, crowded map[uint32]bool, times float64) {
	outward := map[uint32][3]float64{}
	for i, t := range m.Triangles {
		for _, v := range t {
			if crowded[same[v]] {
				outward[v] = mesh.Add(outward[v], m.Normal(i))
			}
		}
	}
	for v, n := range outward {
		l := mesh.Length(n)
		if l == 0 {
			continue
		}
		at, step := m.Vertices[v], leastStep
		for _, x := range at {
			step = max(step, pace*math.Abs(x))
		}
		m.Vertices[v] = rounded(mesh.Sub(at, mesh.Scale(n, times*step/l)))
	}
}

// surfacesOf are the distinct surfaces of parts that share one file.
func surfacesOf(parts []Part) ([]*mesh.Mesh, error) {
	if err := check(parts); err != nil {
		return nil, err
	}
	all := core.Map(parts, func(p Part) *mesh.Mesh { return p.Mesh })
	out, err := distinct(all...)
	if err != nil {
		return nil, fmt.Errorf("STL: %w", err)
	}
	return out, nil
}
