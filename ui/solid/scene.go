package solid

import (
	"fmt"
	"math"
	"strings"

	"swarmdeck/engine/cad/mesh"
)

// Scene is a set of parts, ready to be drawn. It never changes, so that any
// number of views may draw it.
type Scene struct {
	parts  []Part // without their meshes
	verts  [][3]float64
	tris   []triangle
	edges  []edge
	box    mesh.Box
	center [3]float64 // of the box; verts count from here
	sides  bool       // it compares
	notes  []string
}

// triangle is one facet with its unit normal, zero when it has no area.
type triangle struct {
	a, b, c int32
	part    uint8 // from 1, as View's buffers have it
	normal  [3]float32
}

// New makes a scene. What can't be drawn, such as corners that are no numbers,
// is left out; Note says so.
func New(parts []Part) *Scene {
	s := &Scene{}
	if len(parts) > MaxParts {
		s.note("%d of %d parts", MaxParts, len(parts))
		parts = parts[:MaxParts]
	}
	read, bad := 0, 0
	for i, p := range parts {
		m := p.Mesh
		p.Mesh = nil
		s.parts = append(s.parts, p)
		s.sides = s.sides || p.Side != Neither
		if m == nil {
			continue
		}
		if room := maxRead - read; len(m.Triangles) > room {
			s.note("%d of %d triangles of part %d read", room, len(m.Triangles), i+1)
			m = &mesh.Mesh{Vertices: m.Vertices, Triangles: m.Triangles[:room]}
		}
		read += len(m.Triangles)
		bad += s.add(m, uint8(i+1))
	}
	if bad > 0 {
		s.note("%d broken triangles left out", bad)
	}
	s.measure()
	s.coarsen()
	s.shape()
	s.join()
	return s
}

func (s *Scene) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// Note says what of the scene is left out or drawn coarser, in a line; "" is
// nothing.
func (s *Scene) Note() string { return strings.Join(s.notes, "; ") }

// Box is around all parts, in mm; the zero box when there is nothing.
func (s *Scene) Box() mesh.Box { return s.box }

// Parts are the parts in their order, without meshes.
func (s *Scene) Parts() []Part { return s.parts }

// Empty tells whether there is nothing to see.
func (s *Scene) Empty() bool { return len(s.tris) == 0 }

// add takes over a mesh without the corners that no triangle uses, and tells
// how many triangles it left out.
func (s *Scene) add(m *mesh.Mesh, part uint8) (bad int) {
	number := make([]int32, len(m.Vertices)) // of a used corner in s.verts, from 1
	corner := func(v uint32) (int32, bool) {
		if int64(v) >= int64(len(m.Vertices)) {
			return 0, false
		}
		if number[v] == 0 {
			for _, x := range m.Vertices[v] {
				if !(math.Abs(x) <= maxCoord) {
					return 0, false
				}
			}
			s.verts = append(s.verts, m.Vertices[v])
			number[v] = int32(len(s.verts))
		}
		return number[v] - 1, true
	}
	for _, t := range m.Triangles {
		a, okA := corner(t[0])
		b, okB := corner(t[1])
		c, okC := corner(t[2])
		if !okA || !okB || !okC || a == b || b == c || c == a {
			bad++
			continue
		}
		s.tris = append(s.tris, triangle{a: a, b: b, c: c, part: part})
	}
	return bad
}

// measure finds the box and moves the scene's middle to the origin, where
// numbers are most exact.
func (s *Scene) measure() {
	m := mesh.Mesh{Vertices: s.verts}
	s.box = m.Bounds()
	s.center = mesh.Scale(mesh.Add(s.box.Min, s.box.Max), 0.5)
	for i := range s.verts {
		s.verts[i] = mesh.Sub(s.verts[i], s.center)
	}
}

// shape works out the normals.
func (s *Scene) shape() {
	for i := range s.tris {
		t := &s.tris[i]
		a, b, c := s.verts[t.a], s.verts[t.b], s.verts[t.c]
		n := mesh.Cross(mesh.Sub(b, a), mesh.Sub(c, a))
		if l := mesh.Length(n); l > 0 && !math.IsInf(l, 0) {
			for k := range 3 {
				t.normal[k] = float32(n[k] / l)
			}
		}
	}
}

// coarsen makes a scene of too many triangles one of MaxTriangles at most:
// corners within one cell of a grid become one, and what has lost its area by
// that goes. The grid is the finest of those that halve from the size of a
// pixel on a large screen.
func (s *Scene) coarsen() {
	was := len(s.tris)
	if was <= MaxTriangles {
		return
	}
	size := s.box.Size()
	span := max(size[0], size[1], size[2])
	for n := 256.0; n >= 2 && span > 0; n /= 2 {
		if verts, tris := s.snapped(span / n); len(tris) <= MaxTriangles || n < 4 {
			s.verts, s.tris = verts, tris
			s.note("%d triangles drawn as %d: details below %.2g mm are left out", was, min(len(tris), MaxTriangles), span/n)
			break
		}
	}
	if len(s.tris) > MaxTriangles {
		s.tris = s.tris[:MaxTriangles]
		s.note("%d triangles not drawn", was-MaxTriangles)
	}
}

// snapped is the scene with one corner of each part per cell of a grid.
func (s *Scene) snapped(cell float64) ([][3]float64, []triangle) {
	type key struct {
		x, y, z int32
		part    uint8
	}
	number := map[key]int32{}
	var verts [][3]float64
	corner := func(v int32, part uint8) int32 {
		p := s.verts[v]
		k := key{int32(math.Floor(p[0] / cell)), int32(math.Floor(p[1] / cell)), int32(math.Floor(p[2] / cell)), part}
		n, ok := number[k]
		if !ok {
			n = int32(len(verts))
			number[k] = n
			verts = append(verts, p)
		}
		return n
	}
	var tris []triangle
	for _, t := range s.tris {
		t.a, t.b, t.c = corner(t.a, t.part), corner(t.b, t.part), corner(t.c, t.part)
		if t.a == t.b || t.b == t.c || t.c == t.a {
			continue
		}
		if tris = append(tris, t); len(tris) >= 2*MaxTriangles {
			break // too fine a grid: the count is all that is asked for
		}
	}
	return verts, tris
}
