package screen

import (
	"strings"
	"unicode/utf8"
)

// Render is the picture as a terminal reads it: rows joined by line breaks,
// each exactly as wide as the canvas, with a style sequence only where the
// style changes. Every row begins and ends in the default style. Call it on
// the whole picture.
func (c *Canvas) Render(t *Theme) string {
	g := c.g
	out := g.out[:0]
	for y := range g.h {
		if y > 0 {
			out = append(out, '\n')
		}
		style := plainSGR
		var was cell // the one before, if it was tinted
		var tinted bool
		var link, own uint16
		for _, k := range g.cell[y*g.w : (y+1)*g.w] {
			if k.width == 0 {
				continue
			}
			if k.link != link && !g.silent {
				out, link = g.appendLink(out, k.link), k.link
			}
			switch {
			case k.style != 0:
				if k.style != own {
					out = t.appendStyle(out, g.styles[k.style-1])
				}
				style, tinted = "", false
			case (k.figure != 0 || k.ground != 0) && t.colored:
				if k.base == ' ' && k.ground != 0 && tinted { // its figure isn't seen
					k.figure, k.role = was.figure, was.role
				}
				out = t.appendTinted(out, &k, &was, tinted)
				style, was, tinted = "", k, true
			default:
				if want := t.style(&k); want != style {
					out = append(out, want...)
					style, tinted = want, false
				}
			}
			own = k.style
			out = g.append(out, k)
		}
		if style != plainSGR {
			out = append(out, plainSGR...)
		}
		if link != 0 {
			out = g.appendLink(out, 0)
		}
	}
	g.out = out
	return string(out)
}

func (t *Theme) style(k *cell) string {
	if k.base == ' ' {
		return t.blank[k.role]
	}
	return t.sgr[k.role]
}

const plainSGR = "\x1b[m"

func (g *cells) append(out []byte, k cell) []byte {
	if k.base < utf8.RuneSelf {
		out = append(out, byte(k.base))
	} else {
		out = utf8.AppendRune(out, k.base)
	}
	if k.marks > 0 && int(k.marks) <= len(g.marks) {
		out = append(out, g.marks[k.marks-1]...)
	}
	return out
}

// Plain is the window's text, one string a row, without the spaces at its end.
func (c *Canvas) Plain() []string {
	rows := make([]string, c.view.H)
	for y := range rows {
		var b []byte
		for _, k := range c.row(y) {
			if k.width > 0 {
				b = c.g.append(b, k)
			}
		}
		rows[y] = strings.TrimRight(string(b), " ")
	}
	return rows
}

// Roles is one letter for each cell of the window (see Role.Letter), one
// string a row, without the '.' of Text at its end.
func (c *Canvas) Roles() []string {
	rows := make([]string, c.view.H)
	for y := range rows {
		b := make([]byte, 0, c.view.W)
		for _, k := range c.row(y) {
			b = append(b, k.role.Letter())
		}
		rows[y] = strings.TrimRight(string(b), ".")
	}
	return rows
}

// At is the character and role of a cell of the window; the right half of a
// wide character has no text. ok is false outside.
func (c *Canvas) At(x, y int) (text string, role Role, ok bool) {
	if !c.Bounds().Contains(x, y) {
		return "", Text, false
	}
	k := c.row(y)[x]
	if k.width > 0 {
		text = string(c.g.append(nil, k))
	}
	return text, k.role, true
}

// row is the window's part of a row of the picture, and line all of that row.
func (c *Canvas) row(y int) []cell { return c.line(y)[c.view.X : c.view.X+c.view.W] }

func (c *Canvas) line(y int) []cell {
	at := (c.view.Y + y) * c.g.w
	return c.g.cell[at : at+c.g.w]
}
