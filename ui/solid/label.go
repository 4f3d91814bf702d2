package solid

import (
	"math"
	"strconv"

	"swarmdeck/engine/cad"
	"swarmdeck/ui/screen"
)

// mark collects where a part is seen.
type mark struct{ n, x, y int }

func (m *mark) see(x, y int) { m.n, m.x, m.y = m.n+1, m.x+x, m.y+y }

// Sign is the letter of a part, numbered from 1, in pictures and legends; a
// star beyond the letters.
func Sign(part int) rune {
	switch {
	case part >= 1 && part <= 26:
		return 'A' + rune(part-1)
	case part > 26 && part <= 52:
		return 'a' + rune(part-27)
	}
	return '*'
}

// labels writes the letter of each part into the middle of what is seen of it,
// so that colour does not stand alone.
func (b *brush) labels(r screen.Rect, at *[MaxParts + 1]mark) {
	for part := 1; part <= min(len(b.scene.parts), 52); part++ {
		m := at[part]
		if m.n < 3 {
			continue
		}
		x, y := b.nearest(m.x/m.n, m.y/m.n, uint8(part))
		if x < 0 {
			continue
		}
		_, ground := b.c.Tints(r.X+x, r.Y+y)
		role := screen.Title
		if b.look.Part > 0 && b.look.Part != part {
			role = screen.Dim
		}
		b.c.Set(r.X+x, r.Y+y, Sign(part), role, 0, ground)
	}
}

// nearest is the cell of a part nearest to one that may belong to another,
// away from edges if possible; it looks up to eight cells around.
func (b *brush) nearest(cx, cy int, part uint8) (x, y int) {
	x, y = -1, -1
	best := math.MaxInt
	w, h := b.w/2, b.h/4
	for py := max(cy-8, 0); py <= min(cy+8, h-1); py++ {
		for px := max(cx-8, 0); px <= min(cx+8, w-1); px++ {
			s := b.surface(px, py, 0, 4)
			if s.n < 4 || s.part != part {
				continue
			}
			far := (px-cx)*(px-cx) + 4*(py-cy)*(py-cy)
			if k := b.cells[py*w+px]; k.edge[0]|k.edge[1] != 0 {
				far += 12
			}
			if far < best {
				best, x, y = far, px, py
			}
		}
	}
	return x, y
}

// axes shows where x, y and z go, in the lower left corner, where that is free.
func (b *brush) axes(r screen.Rect) {
	if b.look.Four || r.W < 24 || r.H < 9 {
		return
	}
	free := func(x, y int, ch rune, role screen.Role) {
		if b.blank(x-r.X, y-r.Y) {
			b.c.Set(x, y, ch, role, 0, 0)
		}
	}
	f := b.look.Camera.frame()
	x0, y0 := r.X+4, r.Y+r.H-3
	for i, name := range "xyz" {
		dx, dy := int(math.Round(4*f.right[i])), int(math.Round(2*f.up[i]))
		if dx == 0 && dy == 0 {
			continue // it points at the viewer, or away
		}
		free(x0+dx, y0-dy, name, screen.Title)
	}
	free(x0, y0, '+', screen.Dim)
}

// blank tells whether nothing of the scene is seen in a cell.
func (b *brush) blank(x, y int) bool {
	k := b.cells[y*(b.w/2)+x]
	return k.edge[0]|k.edge[1] == 0 && b.surface(x, y, 0, 4).n == 0
}

// Extent writes a size out, such as "100 x 80 x 20 mm".
func Extent(size [3]float64) string {
	return Number(size[0]) + " x " + Number(size[1]) + " x " + Number(size[2]) + " mm"
}

// Number writes a measure out with six digits at most.
func Number(v float64) string {
	if math.Abs(v) < 1e-9 {
		return "0"
	}
	if a := math.Abs(v); a >= 1e6 && a < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// Short writes a measure out with three digits, where more would say nothing.
func Short(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// partRoles are the colours of parts, one after the other. None says good or
// bad.
var partRoles = [...]screen.Role{screen.Accent, screen.Marked, screen.Busy, screen.Title}

// OfSurfaces is the scene of solids as they lie.
func OfSurfaces(all []cad.Surface) *Scene {
	parts := make([]Part, len(all))
	for i, s := range all {
		parts[i] = Part{Name: s.EntityID, Mesh: s.Mesh, Role: partRoles[i%len(partRoles)]}
	}
	return New(parts)
}

// Compare is the scene of what changed between two states.
func Compare(before, after []cad.Surface) *Scene {
	var parts []Part
	for _, s := range before {
		parts = append(parts, Part{Name: s.EntityID, Mesh: s.Mesh, Side: Before})
	}
	for _, s := range after {
		parts = append(parts, Part{Name: s.EntityID, Mesh: s.Mesh, Side: After})
	}
	return New(parts)
}
