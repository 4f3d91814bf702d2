package solid

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
