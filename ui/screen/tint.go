package screen

import (
	"image/color"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

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
	row := c.line(y)
	x += c.view.X
	mend(row, x)
	row[x] = cell{base: ch, width: 1, role: role.known(), figure: figure, ground: ground}
}

// Tints are the tints of a cell of the window; none outside.
func (c *Canvas) Tints(x, y int) (figure, ground Tint) {
	k := c.cell(x, y)
	return k.figure, k.ground
}

// Colored tells whether the theme has any colour; without one, tints are not
// drawn.
func (t *Theme) Colored() bool { return t.colored }

// tints works out the shades of a role: of what the terminal's own colours look like, which
// is not known, they are about right.
func (t *Theme) tints(r Role) {
	c := said(t.styles[r].GetForeground())
	if c == nil {
		c = said(t.styles[r].GetBackground())
	}
	t.colored = t.colored || c != nil
	if _, is := c.(ansi.BasicColor); is { // brighter than xterm's, so that their shades stay apart
		c = lipgloss.Lighten(c, 0.3)
	} else if c == nil {
		c = color.Gray{208}
	}
	for level := range t.shade[r] {
		dark := lipgloss.Darken(c, 1-float64(level+1)/TintLevels)
		t.shade[r][level] = ansi.Style{}.ForegroundColor(dark)[0][1:]
	}
}

// appendTinted selects the look of a tinted cell. After another tinted cell of
// equal weight, was, only the colours that differ are said.
func (t *Theme) appendTinted(out []byte, k, was *cell, after bool) []byte {
	bold := t.styles[k.role].GetBold()
	after = after && t.styles[was.role].GetBold() == bold
	start := len(out)
	if out = append(out, "\x1b["...); !after {
		out = append(out, '0')
		if bold {
			out = append(out, ";1"...)
		}
	}
	out = t.appendColor(out, '3', k.figure, t.figure[k.role], was.figure, t.figure[was.role], after)
	out = t.appendColor(out, '4', k.ground, t.ground[k.role], was.ground, t.ground[was.role], after)
	switch {
	case len(out) == start+2:
		return out[:start]
	case out[start+2] == ';':
		out = append(out[:start+2], out[start+3:]...)
	}
	return append(out, 'm')
}

// appendColor says one of a cell's colours, its tint or its role's, unless the
// cell before has the same.
func (t *Theme) appendColor(out []byte, which byte, k Tint, role string, was Tint, wasRole string, after bool) []byte {
	if after && (k == was && k != 0 || k == 0 && was == 0 && role == wasRole) {
		return out
	}
	if k == 0 {
		return append(append(out, ';'), role...)
	}
	r, level := k.Parts()
	shades := &t.shade[r]
	return append(append(out, ';', which), shades[min(max(level, 1), TintLevels)-1]...)
}
