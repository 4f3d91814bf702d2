package solid

import (
	"cmp"
	"slices"
)

// edge is a line between two corners with the triangles on both sides, -1 for
// none.
type edge struct {
	a, b        int32
	left, right int32
	crease      bool // it is drawn wherever it is visible; others only as outline
}

// flat is the cosine up to which neighbours count as parts of one curved face:
// 31 degrees, a circle of twelve chords.
const flat = 0.857

// join finds the edges: each pair of neighbours by sorting, since a map of
// that many is slow.
func (s *Scene) join() {
	type half struct {
		key uint64
		tri int32
	}
	halves := make([]half, 0, 3*len(s.tris))
	for i, t := range s.tris {
		for _, e := range [3][2]int32{{t.a, t.b}, {t.b, t.c}, {t.c, t.a}} {
			low, high := min(e[0], e[1]), max(e[0], e[1])
			halves = append(halves, half{uint64(low)<<32 | uint64(high), int32(i)})
		}
	}
	slices.SortFunc(halves, func(a, b half) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.tri, b.tri)) })
	s.edges = make([]edge, 0, len(halves)/2)
	for i := 0; i < len(halves); {
		j := i + 1
		for j < len(halves) && halves[j].key == halves[i].key {
			j++
		}
		e := edge{a: int32(halves[i].key >> 32), b: int32(halves[i].key & 0xffffffff), left: halves[i].tri, right: -1}
		if j-i > 1 {
			e.right = halves[i+1].tri
		}
		e.crease = j-i != 2 || s.sharp(e.left, e.right)
		s.edges = append(s.edges, e)
		i = j
	}
}

// sharp tells whether two triangles meet at an edge that a drawing shows.
func (s *Scene) sharp(i, j int32) bool {
	a, b := s.tris[i].normal, s.tris[j].normal
	if a == ([3]float32{}) || b == ([3]float32{}) {
		return false // slivers have no direction
	}
	return a[0]*b[0]+a[1]*b[1]+a[2]*b[2] < flat
}
