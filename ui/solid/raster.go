package solid

import "math"

// triangle fills the dots of one triangle that looks towards the viewer.
func (v *View) triangle(i int32) {
	t := &v.scene.tris[i]
	if v.facing[i] <= 0 {
		return
	}
	l := &v.dots[0]
	if v.scene.parts[t.part-1].Side == After {
		l = &v.dots[1]
	}
	v.fill(l, v.points[t.a], v.points[t.b], v.points[t.c], i+1)
}

// fill puts a triangle into a layer: every dot whose middle lies in it, once,
// wherever it is nearest.
func (v *View) fill(l *layer, a, b, c [3]float32, mark int32) {
	det := (b[0]-a[0])*(c[1]-a[1]) - (c[0]-a[0])*(b[1]-a[1])
	if abs(det) < 1e-9 {
		return
	}
	dzx := ((b[2]-a[2])*(c[1]-a[1]) - (c[2]-a[2])*(b[1]-a[1])) / det
	dzy := ((c[2]-a[2])*(b[0]-a[0]) - (b[2]-a[2])*(c[0]-a[0])) / det
	top, bottom := row(min(a[1], b[1], c[1]), v.h), row(max(a[1], b[1], c[1]), v.h)
	if v.left -= bottom - top; v.left < 0 {
		v.short = true
		return
	}
	for y := top; y < bottom; y++ {
		yc := float32(y) + 0.5
		low, high := float32(math.MaxFloat32), float32(-math.MaxFloat32)
		low, high = span(a, b, yc, low, high)
		low, high = span(b, c, yc, low, high)
		low, high = span(c, a, yc, low, high)
		from, to := row(low, v.w), row(high, v.w)
		if from >= to {
			continue
		}
		v.left -= to - from
		z := a[2] + (float32(from)+0.5-a[0])*dzx + (yc-a[1])*dzy
		at := y * v.w
		depth, tri := l.z[at+from:at+to], l.tri[at+from:at+to]
		tri = tri[:len(depth)]
		for x := range depth {
			if z > depth[x] {
				depth[x], tri[x] = z, mark
			}
			z += dzx
		}
	}
}

// row is the first row or column whose middle is not before at, within 0 to n.
func row(at float32, n int) int {
	if !(at > 0) {
		return 0
	}
	if at >= float32(n) {
		return n
	}
	return int(at + 0.5)
}

// span widens the stretch of a row by where a side of the triangle crosses it.
// The side is always walked from above, so that two triangles that share it
// meet without a gap.
func span(p, q [3]float32, y, low, high float32) (float32, float32) {
	if (p[1] <= y) == (q[1] <= y) {
		return low, high
	}
	if p[1] > q[1] {
		p, q = q, p
	}
	x := p[0] + (y-p[1])/(q[1]-p[1])*(q[0]-p[0])
	return min(low, x), max(high, x)
}

// compose finds what is seen at each dot: the nearest face.
func (v *View) compose() {
	for i := range v.face {
		p, z, owner := v.seen(&v.dots[0], i)
		if v.scene.sides {
			p.seen = seenBefore
			q, zq, ownerq := v.seen(&v.dots[1], i)
			q.seen = seenAfter
			switch {
			case q.part == 0:
			case p.part == 0 || zq > z+sameDepth:
				p, z, owner = q, zq, ownerq
			case zq >= z-sameDepth:
				p.seen |= seenAfter
			}
		}
		v.face[i], v.wall[i], v.owner[i] = p, z, owner
	}
}

// sameDepth is within how many dots two surfaces count as one.
const sameDepth = 0.35

// seen is what one layer has at a dot: its look, its depth, and the triangle.
func (v *View) seen(l *layer, i int) (p pixel, z float32, owner int32) {
	owner = l.tri[i]
	if owner == 0 {
		return pixel{}, far, 0
	}
	tri := &v.scene.tris[owner-1]
	return pixel{part: tri.part, level: bright(dot(tri.normal, v.light))}, l.z[i], owner
}

// hides tells whether what is seen at a dot lies before a point of it. The
// depth there is that of the plane through the face, so that an edge is not
// hidden by the faces that it joins, nor seen through one close before it.
func (v *View) hides(i int, x, y, z float32, dx, dy int) bool {
	owner := v.owner[i]
	if owner == 0 {
		return false
	}
	g := v.grade[owner-1]
	rise := (x-float32(dx)-0.5)*g[0] + (y-float32(dy)-0.5)*g[1]
	return z < v.wall[i]+min(max(rise, -mostRise), 1)-edgeBefore
}

// How exact hides is, in dots: a face that is nearly edge on counts as curved,
// and a little nearness is nothing.
const (
	mostRise   = 6
	edgeBefore = 0.75
)
