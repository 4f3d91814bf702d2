package pane

import (
	"strings"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Draw shows the window of the page; focused says that the cursor, if there is
// one, has the keys.
func (p *Page) Draw(c *screen.Canvas, focused bool) {
	for y := 0; y < c.H() && p.top+y < len(p.lines); y++ {
		line, label := &p.lines[p.top+y], labels(c.W())
		if line.wide {
			label = 0
		}
		if line.slide {
			p.drawSlid(c, y, line)
		} else if line.head {
			x := c.Text(0, y, screen.Title, line.label)
			c.HLine(x+1, y, c.W()-x-1, screen.Border)
		} else {
			c.TextIn(0, y, label, screen.Dim, line.label)
			line.draw(c, label+1, y, p.top+y == 0 || p.lines[p.top+y-1].fold != line.fold)
			if p.find != "" && p.hit(p.top+y) {
				c.Text(label, y, screen.Match, string(c.Glyphs().Cursor))
			}
		}
		if p.aims && focused && p.top+y == p.at {
			if !line.head {
				c.Text(label, y, screen.Text, string(c.Glyphs().Cursor))
			}
			c.Paint(screen.Rect{X: 0, Y: y, W: c.W(), H: 1}, screen.Selected)
		}
	}
	if len(p.lines) > c.H() && c.H() > 0 && c.W() > 0 {
		p.bar(c)
	}
}

// draw draws the line's text from column x on; first says that it is the first
// line of its value.
func (l *pageLine) draw(c *screen.Canvas, x, y int, first bool) {
	x = c.Text(x, y, screen.Border, l.lead)
	if l.doc != nil {
		sign := ""
		if v := l.fold.of; first && (l.fold.part == foldMore || l.fold.part == foldHead && v.folds()) {
			sign = string(c.Glyphs().Closed)
			if v.open && l.fold.part == foldHead {
				sign = string(c.Glyphs().Open)
			}
		}
		c.Text(x, y, screen.Border, sign)
		x += 2
	}
	if !l.cut {
		l.drawText(c, x, y)
		return
	}
	w := c.W() - x - 1 // the bar's column is not for text
	note := term.Width(l.note)
	if note > 0 {
		w -= note + 1
	}
	text := term.Width(l.text[:min(len(l.text), 8*max(w, 0)+8)])
	room := screen.Rect{X: x, Y: y, W: min(text, max(w, 0)), H: 1}
	l.drawText(c.Sub(room), 0, 0)
	if text > room.W && room.W > 0 {
		c.Text(x+room.W-1, y, screen.Dim, c.Glyphs().Ellipsis)
	}
	if room.W > 0 {
		x += room.W + 1
	}
	c.Text(x, y, screen.Dim, l.note)
}

// drawSlid draws a line of a table from where the page is scrolled to.
func (p *Page) drawSlid(c *screen.Canvas, y int, l *pageLine) {
	room := screen.Rect{X: 1, Y: y, W: c.W() - 2, H: 1}
	l.drawText(c.Sub(room), -p.left, 0)
	if room.W > 0 && term.Width(l.text) > p.left+room.W {
		c.Text(room.W, y, screen.Dim, c.Glyphs().Ellipsis)
	}
}

// drawText draws the text in its role, a name and revealed hidden characters
// in roles of their own.
func (l *pageLine) drawText(c *screen.Canvas, x, y int) {
	switch {
	case l.spans != nil:
		c.Styled(x, y, &screen.Styled{Text: l.text, Role: l.role, Spans: l.spans})
	case l.exact:
		x = drawExact(c, x, y, screen.Accent, l.text[:l.key])
		drawExact(c, x, y, l.role, l.text[l.key:])
	default:
		c.Text(x, y, l.role, l.text)
	}
}

// drawExact draws revealed hidden characters in a role of their own.
func drawExact(c *screen.Canvas, x, y int, role screen.Role, rest string) int {
	for rest != "" {
		i := strings.Index(rest, "⟨")
		if i < 0 {
			break
		}
		j := strings.Index(rest[i:], "⟩")
		if j < 0 {
			break
		}
		j += i + len("⟩")
		x = c.Text(x, y, role, rest[:i])
		x = c.Text(x, y, screen.Hidden, rest[i:j])
		rest = rest[j:]
	}
	return c.Text(x, y, role, rest)
}

// bar marks, in the right column, which part of the page is in view.
func (p *Page) bar(c *screen.Canvas) {
	h := c.H()
	size := max(1, h*h/len(p.lines))
	at := 0
	if hidden := len(p.lines) - h; hidden > 0 {
		at = p.top * (h - size) / hidden
	}
	for y := range h {
		g := c.Glyphs().ScrollTrack
		if y >= at && y < at+size {
			g = c.Glyphs().ScrollBar
		}
		c.Fill(screen.Rect{X: c.W() - 1, Y: y, W: 1, H: 1}, screen.Border, g)
	}
}
