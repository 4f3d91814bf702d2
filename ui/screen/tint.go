package screen

import "strconv"

// Tint is a role's colour at a brightness, for pictures that are shaded. The
// zero value is none: the role's own look. Themes without colours draw none.
type Tint uint16

// TintLevels is how many brightnesses there are; few, so that neighbours often
// share one and a frame stays small on the wire.
const TintLevels = 24

// TintOf is a role's colour at a brightness from 1, dark, to TintLevels, the
// full colour. What lies outside counts as the nearest.
func TintOf(r Role, level int) Tint {
	return Tint(r.known())<<8 | Tint(min(max(level, 1), TintLevels))
}

// Parts are a tint's role and brightness; the level of no tint is 0.
func (t Tint) Parts() (r Role, level int) { return Role(t >> 8).known(), int(t & 0xff) }

// Set draws one character of one cell, with a tint for the character and one
// for its ground. Wider characters become a space. It costs less than Text.
func (c *Canvas) Set(x, y int, ch rune, role Role, figure, ground Tint) {
	if y < 0 || y >= c.view.H || x < 0 || x >= c.view.W {
		return
	}
	if (ch < 0x20 || ch >= 0x7f) && (ch < 0x2580 || ch > 0x259f) && (ch < 0x2800 || ch > 0x28ff) { // blocks and braille take one cell
		ch = single(ch)
	}
	g := c.g
	row := g.cell[(y+c.view.Y)*g.w : (y+c.view.Y+1)*g.w]
	x += c.view.X
	mend(row, x)
	row[x] = cell{base: ch, width: 1, role: role.known(), figure: figure, ground: ground}
}

// Tints are the tints of a cell of the window; none outside.
func (c *Canvas) Tints(x, y int) (figure, ground Tint) {
	if !c.Bounds().Contains(x, y) {
		return 0, 0
	}
	k := c.row(y)[x]
	return k.figure, k.ground
}

// rgb is a true colour.
type rgb [3]uint8

// Colored tells whether the theme has any colour; without one, tints are not
// drawn.
func (t *Theme) Colored() bool { return t.colored }

// tints works out the full colour of every role.
func (t *Theme) tints() {
	for r, s := range t.styles {
		c := s.FG
		if c.kind == defaultColor && s.BG.kind != defaultColor {
			c = s.BG
		}
		if t.base[r] = plainTint; c.kind != defaultColor {
			t.base[r], t.colored = c.about(), true
		}
	}
}

// plainTint stands for the terminal's own colour of text, which is not known.
var plainTint = rgb{208, 208, 208}

// color is what a tint looks like.
func (t *Theme) color(k Tint) rgb {
	r, level := k.Parts()
	base := t.base[r]
	for i, v := range base {
		base[i] = uint8((int(v)*level + TintLevels/2) / TintLevels)
	}
	return base
}

// about is what a colour looks like where the terminal says nothing else:
// xterm's palette, with its first sixteen made a little brighter so that their
// shades stay apart.
func (c Color) about() rgb {
	if c.kind == trueColor {
		return rgb{c.r, c.g, c.b}
	}
	n := int(c.r)
	switch {
	case n < 16:
		return [16]rgb{
			{90, 90, 90},
			{222, 56, 43},
			{57, 181, 74},
			{220, 190, 30},
			{70, 120, 235},
			{200, 80, 200},
			{44, 181, 201},
			{208, 208, 208},
			{128, 128, 128},
			{255, 95, 85},
			{85, 225, 105},
			{255, 235, 90},
			{110, 160, 255},
			{245, 120, 245},
			{90, 225, 240},
			{255, 255, 255},
		}[n]
	case n < 232:
		step := func(v int) uint8 {
			if v == 0 {
				return 0
			}
			return uint8(55 + 40*v)
		}
		n -= 16
		return rgb{step(n / 36), step(n / 6 % 6), step(n % 6)}
	}
	return rgb{uint8(8 + 10*(n-232)), uint8(8 + 10*(n-232)), uint8(8 + 10*(n-232))}
}

// appendTinted selects the look of a tinted cell. After another tinted cell of
// equal weight, was, only the colours that differ are said.
func (t *Theme) appendTinted(out []byte, k, was *cell, after bool) []byte {
	s := t.styles[k.role]
	after = after && t.styles[was.role].Bold == s.Bold
	start := len(out)
	if out = append(out, "\x1b["...); !after {
		out = append(out, '0')
		if s.Bold {
			out = append(out, ";1"...)
		}
	}
	if !after || t.figure(k) != t.figure(was) {
		out = t.figure(k).appendWhole(out, 30)
	}
	if !after || t.ground(k) != t.ground(was) {
		out = t.ground(k).appendWhole(out, 40)
	}
	switch {
	case len(out) == start+2:
		return out[:start]
	case out[start+2] == ';':
		out = append(out[:start+2], out[start+3:]...)
	}
	return append(out, 'm')
}

// figure is the colour of a tinted cell's character.
func (t *Theme) figure(k *cell) Color {
	if k.figure == 0 {
		return t.styles[k.role].FG
	}
	c := t.color(k.figure)
	return RGB(c[0], c[1], c[2])
}

// ground is the colour behind it.
func (t *Theme) ground(k *cell) Color {
	if k.ground == 0 {
		return t.styles[k.role].BG
	}
	c := t.color(k.ground)
	return RGB(c[0], c[1], c[2])
}

// appendWhole is append that says the terminal's default too.
func (c Color) appendWhole(b []byte, base int) []byte {
	if c.kind == defaultColor {
		return strconv.AppendInt(append(b, ';'), int64(base+9), 10)
	}
	return c.append(b, base)
}
