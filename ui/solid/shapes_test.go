package solid_test

import (
	"math"

	"swarmdeck/engine/cad/mesh"
)

// cuboid is a box of two triangles a side.
func cuboid(at, size [3]float64) *mesh.Mesh {
	m := &mesh.Mesh{}
	for i := range 8 {
		var p [3]float64
		for j := range 3 {
			p[j] = at[j] + float64(i>>j&1)*size[j]
		}
		m.Vertices = append(m.Vertices, p)
	}
	for _, q := range [][4]uint32{{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}} {
		m.Triangles = append(m.Triangles, [3]uint32{q[0], q[1], q[2]}, [3]uint32{q[0], q[2], q[3]})
	}
	return m
}

// ring is a body between an outer and an inner outline of n corners each, from
// the height low to high, about the z axis.
func ring(n int, outer, inner func(angle float64) (x, y float64), low, high float64) *mesh.Mesh {
	m := &mesh.Mesh{}
	for i := range n {
		a := 2 * math.Pi * float64(i) / float64(n)
		ox, oy := outer(a)
		ix, iy := inner(a)
		m.Vertices = append(m.Vertices, [3]float64{ox, oy, low}, [3]float64{ox, oy, high}, [3]float64{ix, iy, low}, [3]float64{ix, iy, high})
	}
	for i := range n {
		a, b := uint32(4*i), uint32(4*((i+1)%n))
		for _, q := range [][4]uint32{{a, b, b + 1, a + 1}, {a + 3, b + 3, b + 2, a + 2}, {a + 1, b + 1, b + 3, a + 3}, {a + 2, b + 2, b, a}} {
			m.Triangles = append(m.Triangles, [3]uint32{q[0], q[1], q[2]}, [3]uint32{q[0], q[2], q[3]})
		}
	}
	return m
}

func circle(r float64) func(float64) (float64, float64) {
	return func(a float64) (float64, float64) { return r * math.Cos(a), r * math.Sin(a) }
}

// square is the outline of half the side length, its corners at odd eighths.
func square(half float64) func(float64) (float64, float64) {
	return func(a float64) (float64, float64) {
		x, y := math.Cos(a), math.Sin(a)
		s := half / max(math.Abs(x), math.Abs(y))
		return x * s, y * s
	}
}

// plate is a square plate with a round hole.
func plate() *mesh.Mesh { return ring(64, square(50), circle(22), 0, 30) }

// torus has 2*n*k triangles.
func torus(n, k int, r, tube float64) *mesh.Mesh {
	m := &mesh.Mesh{}
	for i := range n {
		a := 2 * math.Pi * float64(i) / float64(n)
		for j := range k {
			b := 2 * math.Pi * float64(j) / float64(k)
			x := r + tube*math.Cos(b)
			m.Vertices = append(m.Vertices, [3]float64{x * math.Cos(a), x * math.Sin(a), tube * math.Sin(b)})
		}
	}
	at := func(i, j int) uint32 { return uint32(i%n*k + j%k) }
	for i := range n {
		for j := range k {
			m.Triangles = append(m.Triangles,
				[3]uint32{at(i, j), at(i+1, j), at(i+1, j+1)}, [3]uint32{at(i, j), at(i+1, j+1), at(i, j+1)})
		}
	}
	return m
}
