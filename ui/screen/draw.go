package screen

import (
	"iter"
	"unicode/utf8"

	"swarmdeck/ui/term"
)

// Text draws s at x, y up to the window's right edge and returns the column
// after it. Tabs go to stops counted from x; a wide character that doesn't
// fit becomes a space.
func (c *Canvas) Text(x, y int, role Role, s string) int {
	next, _ := c.text(x, y, c.view.W, role, s)
	return next
}

// TextIn draws s in exactly w cells, or those up to the window's right edge,
// cut with an ellipsis or filled with spaces, and returns x+w.
func (c *Canvas) TextIn(x, y, w int, role Role, s string) int {
	if w <= 0 {
		return x
	}
	end := min(x+w, c.view.W)
	next, more := c.text(x, y, end, role, s)
	c.Fill(Rect{next, y, end - next, 1}, role, ' ')
	if more && end > x {
		c.text(end-1, y, end, role, c.g.glyphs.Ellipsis)
	}
	return x + w
}

// TextRight draws s against the right end of w cells and returns x+w.
func (c *Canvas) TextRight(x, y, w int, role Role, s string) int {
	if len(s) < 8*w { // a longer one hardly fits, and isn't worth measuring
		if n := term.Width(s); n < w {
			c.Fill(Rect{x, y, w - n, 1}, role, ' ')
			c.text(x+w-n, y, x+w, role, s)
			return x + w
		}
	}
	return c.TextIn(x, y, w, role, s)
}

// TextMiddle is TextIn with the ellipsis in the middle: for paths and ids.
func (c *Canvas) TextMiddle(x, y, w int, role Role, s string) int {
	if len(s) > w && w > 0 {
		s = term.CutMiddle(s, w, c.g.glyphs.Ellipsis)
	}
	return c.TextIn(x, y, w, role, s)
}

// text draws s in columns x to end-1 and tells the next column and whether
// something printable was left.
func (c *Canvas) text(x, y, end int, role Role, s string) (next int, more bool) {
	start := x
	for len(s) > 0 {
		if s[0] == '\t' {
			stop := x + term.TabWidth - (x-start)%term.TabWidth
			for x < min(stop, end) {
				c.put(x, y, cell{base: ' ', width: 1, role: role}, "")
				x++
			}
			s = s[1:]
			if x >= end {
				return x, printable(s)
			}
			continue
		}
		k, rest := term.Next(s)
		if k.Width == 0 {
			return x, false
		}
		if x+k.Width > end {
			for ; x < end; x++ {
				c.put(x, y, cell{base: ' ', width: 1, role: role}, "")
			}
			return x, true
		}
		r, size := utf8.DecodeRuneInString(k.Text)
		c.put(x, y, cell{base: r, width: uint8(k.Width), role: role}, k.Text[size:])
		x, s = x+k.Width, rest
	}
	return x, false
}

func printable(s string) bool {
	k, _ := term.Next(s)
	return k.Width > 0
}

// put sets one character, clipped to the window, and mends wide characters
// that it breaks.
func (c *Canvas) put(x, y int, k cell, marks string) {
	if y < 0 || y >= c.view.H || x < 0 || x >= c.view.W {
		return
	}
	if k.width == 2 && x+1 >= c.view.W {
		k.base, k.width, marks = ' ', 1, ""
	}
	k.role = k.role.known()
	g, row := c.g, c.line(y)
	x += c.view.X
	mend(row, x)
	if marks != "" && len(g.marks) < maxMarks {
		g.marks = append(g.marks, marks)
		k.marks = uint16(len(g.marks))
	}
	row[x] = k
	if k.width == 2 {
		mend(row, x+1)
		row[x] = k
		row[x+1] = cell{role: k.role}
	}
}

// mend blanks the other half of a wide character of which cell x is about to
// be overwritten.
func mend(row []cell, x int) {
	switch {
	case row[x].width == 0 && x > 0:
		row[x-1] = cell{base: ' ', width: 1, role: row[x-1].role}
		row[x] = cell{base: ' ', width: 1, role: row[x].role}
	case row[x].width == 2 && x+1 < len(row):
		row[x+1] = cell{base: ' ', width: 1, role: row[x+1].role}
	}
}

// Fill fills r with one character; one that doesn't take exactly one cell
// becomes a space.
func (c *Canvas) Fill(r Rect, role Role, ch rune) {
	r = r.Clip(c.Bounds())
	if r.Empty() {
		return
	}
	k := cell{base: single(ch), width: 1, role: role.known()}
	for y := r.Y; y < r.Y+r.H; y++ {
		row, x := c.line(y), r.X+c.view.X
		mend(row, x)
		mend(row, x+r.W-1)
		part := row[x : x+r.W]
		for i := range part {
			part[i] = k
		}
	}
}

// single is ch when it takes exactly one cell, else a space.
func single(ch rune) rune {
	if ch >= 0x20 && ch < 0x7f {
		return ch
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], ch)
	k, _ := term.Next(string(buf[:n]))
	if r, size := utf8.DecodeRuneInString(k.Text); k.Width == 1 && size == len(k.Text) {
		return r
	}
	return ' '
}

// Paint gives the cells of r another role, without tints and styles, and leaves their text.
func (c *Canvas) Paint(r Rect, role Role) {
	role = role.known()
	for k := range c.cellsOf(r.Clip(c.Bounds())) {
		k.role, k.style, k.figure, k.ground = role, 0, 0, 0
	}
}

// cellsOf are the cells of a part of the window.
func (c *Canvas) cellsOf(r Rect) iter.Seq[*cell] {
	return func(yield func(*cell) bool) {
		for y := r.Y; y < r.Y+r.H && r.W > 0; y++ {
			row := c.row(y)[r.X : r.X+r.W]
			for x := range row {
				if !yield(&row[x]) {
					return
				}
			}
		}
	}
}

// cell is a cell of the window; an empty one outside.
func (c *Canvas) cell(x, y int) cell {
	if !c.Bounds().Contains(x, y) {
		return cell{}
	}
	return c.row(y)[x]
}

// HLine draws a horizontal line of w cells.
func (c *Canvas) HLine(x, y, w int, role Role) {
	c.Fill(Rect{x, y, w, 1}, role, c.g.glyphs.Horizontal)
}

// VLine draws a vertical line of h cells.
func (c *Canvas) VLine(x, y, h int, role Role) {
	c.Fill(Rect{x, y, 1, h}, role, c.g.glyphs.Vertical)
}

// Box draws a frame along the inside edge of r with a title in its top line,
// and returns the rectangle within.
func (c *Canvas) Box(r Rect, role Role, title string) Rect {
	if r.W < 2 || r.H < 2 {
		return Rect{r.X, r.Y, 0, 0}
	}
	g := c.g.glyphs
	right, bottom := r.X+r.W-1, r.Y+r.H-1
	c.HLine(r.X, r.Y, r.W, role)
	c.HLine(r.X, bottom, r.W, role)
	c.VLine(r.X, r.Y, r.H, role)
	c.VLine(right, r.Y, r.H, role)
	c.Fill(Rect{r.X, r.Y, 1, 1}, role, g.TopLeft)
	c.Fill(Rect{right, r.Y, 1, 1}, role, g.TopRight)
	c.Fill(Rect{r.X, bottom, 1, 1}, role, g.BottomLeft)
	c.Fill(Rect{right, bottom, 1, 1}, role, g.BottomRight)
	if title != "" && r.W >= 6 {
		w := r.W - 4
		if len(title) < w {
			w = min(w, term.Width(title)+2)
		}
		titleRole := role
		if role == Border || role == BorderFocus {
			titleRole = Title
		}
		c.Fill(Rect{r.X + 1, r.Y, w, 1}, titleRole, ' ')
		c.TextIn(r.X+2, r.Y, w-2, titleRole, title)
	}
	return r.Inset(1)
}
