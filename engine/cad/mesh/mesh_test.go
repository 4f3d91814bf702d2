package mesh_test

import (
	"math"
	"strings"
	"testing"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/expect"
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
	for f, q := range [][4]uint32{{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}} {
		m.Triangles = append(m.Triangles, [3]uint32{q[0], q[1], q[2]}, [3]uint32{q[0], q[2], q[3]})
		m.Faces = append(m.Faces, uint32(f), uint32(f))
	}
	return m
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	expect.True(t, math.Abs(got-want) <= 1e-9*math.Max(1, math.Abs(want)), "%s is %v, want %v", what, got, want)
}

func TestBoxesThatTouchShareNothing(t *testing.T) {
	box := func(x, y, z, size float64) mesh.Box {
		return mesh.Box{Min: [3]float64{x, y, z}, Max: [3]float64{x + size, y + size, z + size}}
	}
	a := box(0, 0, 0, 10)
	for _, tt := range []struct {
		b    mesh.Box
		want float64
	}{{a, 1000}, {box(5, 5, 5, 10), 125}, {box(2, 2, 2, 1), 1}, {box(10, 0, 0, 10), 0}, {box(10, 10, 10, 1), 0}, {box(20, -30, 0, 5), 0}, {box(9, 2, -5, 10), 1 * 8 * 5}} {
		got, back := a.Shared(tt.b), tt.b.Shared(a)
		expect.True(t, got == tt.want && back == tt.want, "%v: %v and %v, want %v", tt.b, got, back, tt.want)
	}
}

func TestPropertiesOfABoxFarFromTheOrigin(t *testing.T) {
	m := cuboid([3]float64{1000, -2000, 500}, [3]float64{10, 20, 30})
	expect.No(t, m.Check())
	p := m.Properties()
	near(t, "volume", p.Volume, 6000)
	near(t, "area", p.Area, 2200)
	for i, want := range []float64{1005, -1990, 515} {
		near(t, "centre", p.Center[i], want)
	}
	near(t, "inertia about x", p.Inertia[0][0], 6000.0/12*(400+900))
	near(t, "inertia about y", p.Inertia[1][1], 6000.0/12*(100+900))
	near(t, "inertia about z", p.Inertia[2][2], 6000.0/12*(100+400))
	expect.True(t, math.Abs(p.Inertia[0][1]) <= 1e-6, "product of inertia is %v, want 0", p.Inertia[0][1])
}

func TestBoundsAndMeeting(t *testing.T) {
	a := cuboid([3]float64{0, 0, 0}, [3]float64{10, 10, 10}).Bounds()
	expect.Is(t, a.Size(), [3]float64{10, 10, 10}, "size is")
	for x, want := range map[float64]bool{9: true, 10: true, 10.1: false, -10.1: false} {
		expect.Is(t, a.Meets(cuboid([3]float64{x, 0, 0}, [3]float64{10, 10, 10}).Bounds()), want, "boxes", x, "apart meet")
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*mesh.Mesh)
		want  string
	}{
		"open":         {func(m *mesh.Mesh) { m.Triangles, m.Faces = m.Triangles[1:], nil }, "one triangle only"},
		"turned":       {func(m *mesh.Mesh) { t := &m.Triangles[0]; t[0], t[1] = t[1], t[0] }, "twice in one direction"},
		"inside out":   {func(m *mesh.Mesh) { flip(m) }, "a volume of -6"},
		"index":        {func(m *mesh.Mesh) { m.Triangles[3][1] = 99 }, "triangle 3"},
		"degenerate":   {func(m *mesh.Mesh) { m.Triangles[3][1] = m.Triangles[3][0] }, "three different"},
		"not a number": {func(m *mesh.Mesh) { m.Vertices[2][0] = math.NaN() }, "vertex 2"},
		"too few":      {func(m *mesh.Mesh) { m.Triangles = m.Triangles[:3] }, "3 triangles"},
		"faces":        {func(m *mesh.Mesh) { m.Faces = m.Faces[:3] }, "3 face numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			m := cuboid([3]float64{}, [3]float64{1, 2, 3})
			c.spoil(m)
			err := m.Check()
			expect.True(t, err != nil && strings.Contains(err.Error(), c.want), "got %v, want an error with %q", err, c.want)
		})
	}
}

func flip(m *mesh.Mesh) {
	for i := range m.Triangles {
		t := &m.Triangles[i]
		t[0], t[1] = t[1], t[0]
	}
}
