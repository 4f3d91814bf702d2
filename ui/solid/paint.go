package solid

import (
	"math/bits"

	"swarmdeck/ui/screen"
)

// bright is the level of a face on which light falls with a share of 0 to 1.
func bright(light float32) uint8 {
	return uint8(5 + min(max(light, 0), 1)*(screen.TintLevels-5) + 0.5)
}

// surface is what most of a cell, or half of one, shows.
type surface struct {
	n     int // dots with a face
	pixel     // of most of them; its level is their mean
}

// paint writes the picture into the canvas, cell by cell.
func (v *View) paint(c *screen.Canvas, r screen.Rect, look Look) {
	b := brush{View: v, c: c, look: look, plain: c.Glyphs().Ellipsis == "~", tints: look.Tints}
	labels := !v.scene.sides && len(v.scene.parts) > 1
	var at [MaxParts + 1]mark
	for y := range r.H {
		for x := range r.W {
			s := v.surface(x, y, 0, 4)
			b.cell(r.X+x, r.Y+y, x, y, s)
			if labels && s.n >= 4 {
				at[s.part].see(x, y)
			}
		}
	}
	if labels {
		b.labels(r, &at)
	}
	b.axes(r)
}

// surface looks at some rows of dots of a cell.
func (v *View) surface(x, y, from, to int) surface {
	var s surface
	level, votes := 0, 0
	for dy := from; dy < to; dy++ {
		i := (4*y+dy)*v.w + 2*x
		for _, p := range v.face[i : i+2] {
			if p.part == 0 {
				continue
			}
			s.n++
			level += int(p.level)
			switch {
			case votes == 0:
				s.pixel, votes = p, 1
			case s.part == p.part && s.seen == p.seen:
				votes++
			default:
				votes--
			}
		}
	}
	if s.n > 0 {
		s.level = uint8(level / s.n)
	}
	return s
}

// brush draws cells of one picture.
type brush struct {
	*View
	c     *screen.Canvas
	look  Look
	plain bool // ASCII only
	tints bool
}

// cell draws one cell: x, y of the canvas, cx, cy of the picture.
func (b *brush) cell(x, y, cx, cy int, s surface) {
	k := &b.cells[cy*(b.w/2)+cx]
	edge := k.edge[0] | k.edge[1]
	full := s.n >= 4
	sign := b.sign(s, cx, cy)
	switch {
	case b.look.Mode == Shaded && b.tints && !b.plain:
		b.shaded(x, y, cx, cy, s, sign)
		return
	case b.look.Mode == Shaded:
		edge = 0
	}
	switch {
	case edge != 0:
		b.c.Set(x, y, b.line(edge), b.edgeRole(k), 0, 0)
	case !full:
	case sign != 0:
		b.c.Set(x, y, sign, b.role(s.pixel), 0, 0)
	case b.look.Mode != Lines:
		b.c.Set(x, y, b.ramp(b.level(s)), b.role(s.pixel), 0, 0)
	}
}

// sign is the character that marks a face of one side only, on every second
// cell: colour does not stand alone.
func (b *brush) sign(s surface, cx, cy int) rune {
	if !b.scene.sides || s.n < 4 || (cx+cy)%2 != 0 {
		return 0
	}
	switch s.seen {
	case seenBefore:
		return '-'
	case seenAfter:
		return '+'
	}
	return 0
}

// shaded is a cell of two halves.
func (b *brush) shaded(x, y, cx, cy int, s surface, sign rune) {
	if s.n == 0 {
		return
	}
	role := b.role(s.pixel)
	if sign != 0 {
		b.c.Set(x, y, sign, role, screen.TintOf(role, screen.TintLevels), screen.TintOf(role, b.level(s)/2))
		return
	}
	up, down := b.surface(cx, cy, 0, 2), b.surface(cx, cy, 2, 4)
	var top, bottom screen.Tint
	if up.n >= 2 {
		top = screen.TintOf(b.role(up.pixel), b.level(up))
	}
	if down.n >= 2 {
		bottom = screen.TintOf(b.role(down.pixel), b.level(down))
	}
	switch {
	case top == 0 && bottom == 0:
	case top == bottom:
		b.c.Set(x, y, ' ', role, 0, top)
	case top == 0:
		b.c.Set(x, y, '▄', role, bottom, 0)
	default:
		b.c.Set(x, y, '▀', role, top, bottom)
	}
}

// role is the colour of a face.
func (b *brush) role(p pixel) screen.Role {
	if b.scene.sides {
		return sideRole(p.seen)
	}
	return b.partRole(p.part)
}

// sideRole is the colour of what one or both sides have.
func sideRole(seen uint8) screen.Role {
	switch seen {
	case seenBefore:
		return screen.Removed
	case seenAfter:
		return screen.Added
	}
	return screen.Text
}

// partRole is the colour of a part; those beside the one that stands out are
// dim.
func (b *brush) partRole(part uint8) screen.Role {
	if part == 0 || int(part) > len(b.scene.parts) {
		return screen.Text
	}
	if b.look.Part > 0 && int(part) != b.look.Part {
		return screen.Dim
	}
	return b.scene.parts[part-1].Role
}

// edgeRole is the colour of a cell's edges: of a comparison, what most of
// their dots are.
func (b *brush) edgeRole(k *cell) screen.Role {
	if !b.scene.sides {
		return b.partRole(k.part)
	}
	before, after := bits.OnesCount8(k.edge[0]&^k.edge[1]), bits.OnesCount8(k.edge[1]&^k.edge[0])
	switch both := bits.OnesCount8(k.edge[0] & k.edge[1]); {
	case both >= max(before, after):
		return screen.Text
	case before > after:
		return screen.Removed
	}
	return screen.Added
}

// level is the brightness of a face; what does not stand out is darker.
func (b *brush) level(s surface) int {
	level := int(s.level)
	if b.look.Part > 0 && int(s.part) != b.look.Part && !b.scene.sides {
		level = level * 5 / 8
	}
	return level
}

// Characters for faces, the brightest the densest.
var (
	blocks = [...]rune{'░', '░', '▒', '▓', '█'}
	ascii  = [...]rune{'.', ':', '-', '=', '+', '*', '#', '%', '@'}
)

func (b *brush) ramp(level int) rune {
	if b.plain {
		return ascii[min(level*len(ascii)/(screen.TintLevels+1), len(ascii)-1)]
	}
	return blocks[min(level*len(blocks)/(screen.TintLevels+1), len(blocks)-1)]
}

// line is the character of edge dots.
func (b *brush) line(dots uint8) rune {
	if b.plain {
		return stroke(dots)
	}
	return 0x2800 + rune(dots)
}

// stroke is the ASCII character that looks most like the dots of a cell.
func stroke(dots uint8) rune {
	left, right := column(dots, 0), column(dots, 1)
	l, r := bits.OnesCount8(left), bits.OnesCount8(right)
	switch {
	case l+r >= 6 || l >= 3 && r >= 2 || r >= 3 && l >= 2:
		return '#'
	case l >= 3 || r >= 3 || (l == 0 || r == 0) && l+r >= 2:
		return '|'
	case l == 0 || r == 0:
		if left|right >= 1<<2 {
			return '.'
		}
		return '\''
	}
	// Both columns: how much lower the right one is, in half rows.
	slope := 2*lowest(right) - 2*lowest(left)
	switch {
	case slope >= 2 && (l+r > 2 || slope > 2):
		return '\\'
	case slope <= -2 && (l+r > 2 || slope < -2):
		return '/'
	case left&right&(1<<3) != 0:
		return '_'
	}
	return '-'
}

// column is the dots of one column of a braille character, the top one the
// lowest bit.
func column(dots uint8, x int) (out uint8) {
	for y := range 4 {
		if dots&dotBit[y][x] != 0 {
			out |= 1 << y
		}
	}
	return out
}

func lowest(column uint8) int { return bits.Len8(column) - 1 }
