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

// outline draws the edges that are seen: creases and the rims of curved faces.
func (v *View) outline() {
	s := v.scene
	for i := range s.edges {
		e := &s.edges[i]
		left := v.facing[e.left]
		right := left
		if e.right >= 0 {
			right = v.facing[e.right]
		}
		rim := left > 0 && right <= 0 || left <= 0 && right > 0
		if !e.crease && !rim || left < 0 && right < 0 {
			continue
		}
		v.line(v.points[e.a], v.points[e.b], s.tris[e.left].part)
	}
}

// line sets the dots of one edge where nothing is before it.
func (v *View) line(a, b [3]float32, part uint8) {
	a, b, ok := v.within(a, b)
	if !ok {
		return
	}
	dx, dy, dz := b[0]-a[0], b[1]-a[1], b[2]-a[2]
	steps := int(max(abs(dx), abs(dy))) + 1
	if steps < 0 || steps > v.w+v.h+2 {
		return
	}
	if v.left -= steps; v.left < 0 {
		v.short = true
		return
	}
	side := 0
	if v.scene.parts[part-1].Side == After {
		side = 1
	}
	for i := range steps + 1 {
		t := float32(i) / float32(steps)
		fx, fy, z := a[0]+t*dx, a[1]+t*dy, a[2]+t*dz
		x, y := int(fx), int(fy)
		if x < 0 || y < 0 || x >= v.w || y >= v.h || v.hides(y*v.w+x, fx, fy, z, x, y) {
			continue
		}
		c := &v.cells[y/4*(v.w/2)+x/2]
		c.edge[side] |= dotBit[y%4][x%2]
		if z > c.z {
			c.z, c.part = z, part
		}
	}
}

// dotBit is the bit of a dot in a braille character, by its row and column.
var dotBit = [4][2]uint8{{1 << 0, 1 << 3}, {1 << 1, 1 << 4}, {1 << 2, 1 << 5}, {1 << 6, 1 << 7}}

// within cuts a line at the borders of the picture.
func (v *View) within(a, b [3]float32) (from, to [3]float32, ok bool) {
	low, high := float32(0), float32(1)
	cut := func(p, d, limit float32) bool { // p + t*d <= limit
		switch {
		case d == 0:
			return p <= limit
		case d > 0:
			high = min(high, (limit-p)/d)
		default:
			low = max(low, (limit-p)/d)
		}
		return low <= high
	}
	dx, dy := b[0]-a[0], b[1]-a[1]
	if !cut(a[0], dx, float32(v.w)) || !cut(-a[0], -dx, 0) || !cut(a[1], dy, float32(v.h)) || !cut(-a[1], -dy, 0) {
		return a, b, false
	}
	from, to = a, a
	for i := range 3 {
		from[i] += low * (b[i] - a[i])
		to[i] += high * (b[i] - a[i])
	}
	return from, to, true
}
