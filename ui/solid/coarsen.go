package solid

import "math"

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
