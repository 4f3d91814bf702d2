package logview

import (
	"cmp"
	"strings"

	"swarmdeck/ui/filter"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Draw draws the lines in sight into r.
func (v *View) Draw(c *screen.Canvas, r screen.Rect) {
	r = r.Clip(c.Bounds())
	v.w, v.h, v.missed = r.W, r.H, 0
	if r.Empty() {
		return
	}
	c.Fill(r, screen.Text, ' ')
	last := v.last()
	if last == 0 {
		v.shown, v.above, v.end = 0, 0, 0
		c.TextIn(r.X, r.Y, r.W, screen.Dim, v.Empty)
		return
	}
	top, skip := v.window(last)
	v.shown, v.above, v.end = top, skip, top
	v.paint(c.Sub(r), top, skip, last)
}

// window is the first line to draw and how many of its rows are above.
func (v *View) window(last uint64) (top uint64, skip int) {
	h := uint64(v.h)
	if v.up {
		v.top = min(max(v.top, 1), last)
		if !v.wrap && last-v.top+1 < h { // no room left below the end
			v.top = max(1, last+1-min(h, last))
		}
		v.skip = min(v.skip, v.rowsOf(v.top)-1) // the width may have changed
		return v.top, v.skip
	}
	first := last - min(h, last) + 1
	if !v.wrap {
		return first, 0
	}
	got := v.src.Lines(first, v.h)
	used := 0
	for i := len(got) - 1; i >= 0; i-- {
		if used += rows(&got[i], v.w); used >= v.h {
			return got[i].Seq, used - v.h
		}
	}
	return first, 0
}

// paint draws lines from top on into the whole of c.
func (v *View) paint(c *screen.Canvas, top uint64, skip int, last uint64) {
	got := v.src.Lines(top, c.H())
	y := -skip
	for seq, i := top, 0; y < c.H() && seq <= last; seq++ {
		if i < len(got) && got[i].Seq == seq {
			y += v.line(c, y, &got[i])
			i++
		} else {
			v.missed = cmp.Or(v.missed, seq)
			c.Text(0, y, screen.Dim, c.Glyphs().Ellipsis)
			y++
		}
		v.end = seq
	}
}

// line draws one line from row y on and returns how many rows it takes.
func (v *View) line(c *screen.Canvas, y int, l *Line) int {
	x := headWidth(l)
	if x > 0 && y >= 0 {
		c.TextIn(0, y, x-1, l.HeadRole, l.Head)
	}
	if c.W() <= x {
		return 1
	}
	if v.wrap && l.Flow != nil {
		return v.flow(c, x, y, l.Flow.Lines(c.W()-x))
	}
	if v.wrap {
		return v.wrapped(c, x, y, l.Role, l.Text)
	}
	text := l.Text
	if v.query != "" {
		text = term.Clean(text) // so that what is found is what is drawn
	}
	if x > 0 || v.left > 0 {
		body := c.Sub(screen.Rect{X: x, Y: y, W: c.W() - x, H: 1})
		body.Text(-v.left, 0, l.Role, text)
		v.highlight(body, 0, -v.left, text)
		return 1
	}
	c.TextIn(0, y, c.W(), l.Role, text)
	v.highlight(c, y, 0, text)
	return 1
}

// wrapped draws text in columns x and on, as many rows as it takes.
func (v *View) wrapped(c *screen.Canvas, x, y int, role screen.Role, text string) int {
	pieces := wrap(text, c.W()-x)
	for i, piece := range pieces {
		if at := y + i; at >= 0 && at < c.H() {
			c.Text(x, at, role, piece)
			v.highlight(c, at, x, piece)
		}
	}
	return len(pieces)
}

// flow draws rows from column x on, and returns how many there are.
func (v *View) flow(c *screen.Canvas, x, y int, all []screen.Styled) int {
	for i := max(-y, 0); i < len(all) && y+i < c.H(); i++ {
		c.Styled(x, y+i, &all[i])
		v.highlight(c, y+i, x, all[i].Text)
	}
	return max(len(all), 1)
}

// highlight paints the matches in a row of text that begins at column x.
func (v *View) highlight(c *screen.Canvas, y, x int, text string) {
	for v.query != "" && x < c.W() {
		from, end, ok := filter.Index(text, v.query)
		if !ok {
			return
		}
		x += term.Width(text[:from])
		w := term.Width(text[from:end])
		c.Paint(screen.Rect{X: x, Y: y, W: w, H: 1}, screen.Match)
		x, text = x+w, text[end:]
	}
}

// scroll moves by rows; reaching the end follows again.
func (v *View) scroll(by int) {
	if !v.up {
		if by > 0 {
			return
		}
		v.up, v.top, v.skip = true, max(v.shown, 1), v.above
	}
	for ; by < 0; by++ {
		switch {
		case v.skip > 0:
			v.skip--
		case v.top > 1:
			v.top--
			v.skip = v.rowsOf(v.top) - 1
		}
	}
	for ; by > 0; by-- {
		if v.end >= v.last() && v.fits() {
			v.up = false
			return
		}
		if v.skip++; v.skip >= v.rowsOf(v.top) {
			v.top, v.skip = v.top+1, 0
		}
	}
}

// fits tells whether everything from the top line on is in the window.
func (v *View) fits() bool {
	rows := -v.skip
	for seq := v.top; seq <= v.last(); seq++ {
		if rows += v.rowsOf(seq); rows > v.h {
			return false
		}
	}
	return true
}

// rowsOf is how many rows a line takes, 1 when it isn't at hand.
func (v *View) rowsOf(seq uint64) int {
	if !v.wrap || v.src == nil {
		return 1
	}
	if got := v.src.Lines(seq, 1); len(got) == 1 && got[0].Seq == seq {
		return rows(&got[0], v.w)
	}
	return 1
}

// rows is how many rows a wrapped line takes in w cells.
func rows(l *Line, w int) int {
	if l.Flow != nil {
		return max(len(l.Flow.Lines(w-headWidth(l))), 1)
	}
	return len(wrap(l.Text, w-headWidth(l)))
}

// wrap breaks a line's text into rows of at most w cells, at its own line
// breaks and between words.
func wrap(text string, w int) []string {
	if len(text) <= w && !strings.Contains(text, "\n") {
		return []string{text}
	}
	text = text[:min(len(text), 8*maxRows*max(w, 1))] // a longer one has more rows than are shown
	all := term.Wrap(text, w)
	return all[:min(len(all), maxRows)]
}

func headWidth(l *Line) int {
	if l.Head == "" {
		return 0
	}
	return min(term.Width(l.Head), maxHead) + 1
}
