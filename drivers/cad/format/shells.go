package format

import (
	"context"
	"math"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// body is a connected solid: its outer shell and the shells of the voids in it,
// each a list of triangles.
type body struct {
	outer []int
	voids [][]int
}

// bodies splits a surface into connected shells and gives each void to the
// smallest body around it.
func bodies(ctx context.Context, m *mesh.Mesh, owner map[mesh.Edge]int) ([]body, error) {
	var out []body
	var volumes []float64
	var voids [][]int
	for _, shell := range shells(m, owner) {
		if v := volume(m, shell); v > 0 {
			out, volumes = append(out, body{outer: shell}), append(volumes, v)
		} else {
			voids = append(voids, shell)
		}
	}
	if len(voids) == 0 {
		return out, nil
	}
	boxes := core.Map(out, func(b body) mesh.Box { return around(m, b.outer) })
	for _, void := range voids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at := m.Vertices[m.Triangles[void[0]][0]]
		inside, best := -1, math.Inf(1)
		for i, b := range out {
			if volumes[i] < best && boxes[i].Meets(mesh.Box{Min: at, Max: at}) && surrounds(m, b.outer, at) {
				inside, best = i, volumes[i]
			}
		}
		if inside < 0 {
			return nil, noFaces("the void at triangle %d lies in no solid", void[0])
		}
		out[inside].voids = append(out[inside].voids, void)
	}
	return out, nil
}

// volume is six times that inside a shell, summed from a vertex of its own: below
// 0 for a void.
func volume(m *mesh.Mesh, shell []int) (sum float64) {
	origin, _, _ := m.Corners(shell[0])
	for _, i := range shell {
		a, b, c := m.Corners(i)
		sum += mesh.Dot(mesh.Sub(a, origin), mesh.Cross(mesh.Sub(b, origin), mesh.Sub(c, origin)))
	}
	return sum
}

// around is the smallest box around a shell.
func around(m *mesh.Mesh, shell []int) mesh.Box {
	corners := make([][3]float64, 0, 3*len(shell))
	for _, i := range shell {
		a, b, c := m.Corners(i)
		corners = append(corners, a, b, c)
	}
	return (&mesh.Mesh{Vertices: corners}).Bounds()
}

// shells lists the triangles connected by edges.
func shells(m *mesh.Mesh, owner map[mesh.Edge]int) [][]int {
	seen := make([]bool, len(m.Triangles))
	var out [][]int
	for start := range m.Triangles {
		if seen[start] {
			continue
		}
		seen[start] = true
		shell := []int{start}
		for at := 0; at < len(shell); at++ {
			t := m.Triangles[shell[at]]
			for j, from := range t {
				if n := owner[mesh.Edge{From: t[(j+1)%3], To: from}]; !seen[n] {
					seen[n] = true
					shell = append(shell, n)
				}
			}
		}
		out = append(out, shell)
	}
	return out
}

// surrounds says whether a point lies inside a shell: the solid angles that its
// triangles fill, seen from there, add up to a whole sphere (van Oosterom and
// Strackee 1983).
func surrounds(m *mesh.Mesh, shell []int, p [3]float64) bool {
	sum := 0.0
	for _, i := range shell {
		a, b, c := m.Corners(i)
		a, b, c = mesh.Sub(a, p), mesh.Sub(b, p), mesh.Sub(c, p)
		la, lb, lc := mesh.Length(a), mesh.Length(b), mesh.Length(c)
		sum += 2 * math.Atan2(mesh.Dot(a, mesh.Cross(b, c)),
			la*lb*lc+mesh.Dot(a, b)*lc+mesh.Dot(b, c)*la+mesh.Dot(c, a)*lb)
	}
	return sum > 2*math.Pi
}
