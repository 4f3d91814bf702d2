package diff

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Draw draws the window; focused says that the cursor has the keys.
func (v *View) Draw(c *screen.Canvas, focused bool) {
	if v.doc == nil || c.W() < 1 || c.H() < 1 {
		return
	}
	if v.list {
		left, right := c.Bounds().SplitLeft(v.listWidth())
		if right.W <= 0 {
			v.drawList(c, focused)
			return
		}
		v.drawList(c.Sub(left), focused)
		c, focused = c.Sub(right), false
	}
	if v.lay.total() == 0 {
		text := "nothing differs"
		if !v.doc.Done {
			text = "reading" + c.Glyphs().Ellipsis
		}
		c.Text(0, 0, screen.Dim, text)
		return
	}
	from, to := v.at, v.at
	if v.marked {
		from = v.lay.row(v.doc, v.mark)
	}
	from, to = min(from, to), max(from, to)
	for y := 0; y < c.H(); y++ {
		row := v.top + y
		p, ok := v.lay.find(v.doc, row)
		if !ok {
			break
		}
		f := &v.doc.Files[p.file]
		switch {
		case p.hunk < 0 && p.line == 0:
			v.drawFile(c, y, f, p.file)
		case p.hunk < 0:
			c.Text(2, y, screen.Dim, f.says())
		case p.line < 0:
			v.drawHunk(c, y, &f.hunks[p.hunk], f, p.hunk)
		default:
			v.drawLine(c, y, f, p)
		}
		whole := screen.Rect{X: 0, Y: y, W: c.W(), H: 1}
		switch {
		case focused && row == v.at:
			c.Paint(whole, screen.Selected)
		case v.marked && row >= from && row <= to:
			c.Paint(whole, screen.Marked)
		}
	}
}

// drawFile draws the head of a file.
func (v *View) drawFile(c *screen.Canvas, y int, f *File, i int) {
	sign := c.Glyphs().Open
	if v.lay.shut[i] {
		sign = c.Glyphs().Closed
	}
	x := c.Text(0, y, screen.Border, string(sign))
	name := cmp.Or(f.Path, "a file")
	notes := f.notes()
	if v.Viewed[f.Path] {
		notes += "  viewed"
	}
	if n := len(v.Notes[f.Path]); n > 0 {
		notes += fmt.Sprintf("  %d remarks", n)
	}
	notes += v.tag(f, 0)
	tail := term.Width(notes) + len(f.Counts()) + 3
	width := min(term.Width(name[:min(len(name), 4*c.W())]), max(c.W()-x-1-tail, 8))
	x = c.TextMiddle(x+1, y, width, screen.Title, name) + 1
	x = drawCounts(c, x, y, f)
	x = c.Text(x, y, screen.Dim, notes)
	c.HLine(x+1, y, c.W()-x-1, screen.Border)
}

// notes say what is special about a file.
func (f *File) notes() string {
	text := ""
	add := func(is bool, word string) {
		if is {
			text += "  " + word
		}
	}
	add(f.Op != Modified, f.Op.String())
	add(f.Binary, "binary")
	add(f.LFS, "LFS object, "+f.sizes())
	add(f.Generated, "generated")
	return text
}

// Counts are how many lines come in and go out: +3 -1.
func (f *File) Counts() string { return fmt.Sprintf("+%d -%d", f.Added, f.Removed) }

// drawCounts draws how many lines a file wins and loses.
func drawCounts(c *screen.Canvas, x, y int, f *File) int {
	if f.Binary {
		return x - 1
	}
	x = c.Text(x, y, screen.Added, "+"+strconv.Itoa(f.Added))
	return c.Text(x+1, y, screen.Removed, "-"+strconv.Itoa(f.Removed))
}

func (v *View) drawHunk(c *screen.Canvas, y int, h *hunk, f *File, i int) {
	first := h.new
	if f.Op == Deleted {
		first = h.old
	}
	text := fmt.Sprintf("@@ line %d", max(first, 1))
	if h.shut {
		text += fmt.Sprintf(", %d lines folded", f.lines(h, false))
	}
	x := c.Text(1, y, screen.Accent, text)
	x = c.Text(x+2, y, screen.Dim, h.about)
	c.Text(x, y, screen.Good, v.tag(f, i+1))
}

// digits is the width of a file's line numbers.
func (f *File) digits() int {
	n := 1
	if len(f.hunks) > 0 {
		h := &f.hunks[len(f.hunks)-1]
		n = max(h.old, h.new) + f.lines(h, false)
	}
	return max(len(strconv.Itoa(n)), 3)
}

// drawLine draws a row of lines.
func (v *View) drawLine(c *screen.Canvas, y int, f *File, p place) {
	h := &f.hunks[p.hunk]
	n, first := f.segment(h, p.line, v.lay.side)
	b, i, digits := v.blocks[Segment{p.file, n}], p.line-first, f.digits()
	switch {
	case b == nil:
		c.Text(digits+1, y, screen.Dim, c.Glyphs().Ellipsis)
	case v.lay.side && i < len(b.pairs):
		half := (c.W() - 1) / 2
		for k, at := range b.pairs[i] {
			x, w := k*(half+1), half
			if k == 1 {
				w = c.W() - x
				c.Fill(screen.Rect{X: half, Y: y, W: 1, H: 1}, screen.Border, c.Glyphs().Vertical)
			}
			if at >= 0 {
				l := &b.lines[at]
				number := l.Old
				if k == 1 {
					number = l.New
				}
				v.drawText(c.Sub(screen.Rect{X: x, Y: y, W: w, H: 1}), digits, []int{number}, l, f)
			}
		}
	case !v.lay.side && i < len(b.lines):
		l := &b.lines[i]
		numbers := []int{l.Old, l.New}
		switch {
		case c.W() >= SideWidth: // both
		case l.Kind == Removed:
			numbers = numbers[:1]
		default:
			numbers = numbers[1:]
		}
		v.drawText(c.Sub(screen.Rect{X: 0, Y: y, W: c.W(), H: 1}), digits, numbers, l, f)
	}
}

// drawText draws a line: its numbers, 0 for none, the sign, and the text from where the
// view is scrolled to.
func (v *View) drawText(c *screen.Canvas, digits int, numbers []int, l *Line, f *File) {
	x := 0
	for _, n := range numbers {
		if n > 0 {
			c.TextRight(x, 0, digits, screen.Dim, strconv.Itoa(n))
		}
		x += digits + 1
	}
	role := l.Kind.Role()
	c.Text(x, 0, role, string(rune(l.Kind)))
	x++
	room := c.Sub(screen.Rect{X: x, Y: 0, W: c.W() - x, H: 1})
	at := l.draw(room, -v.left)
	v.matches(room, -v.left, l.Text)
	switch {
	case l.Cut:
		at = room.Text(at, 0, screen.Dim, " "+c.Glyphs().Ellipsis)
	case l.NoEnd:
		at = room.Text(at, 0, screen.Dim, "  no newline at end")
	}
	v.noted(room, at, f, l)
	if at > room.W() && room.W() > 0 {
		room.Text(room.W()-1, 0, screen.Dim, c.Glyphs().Ellipsis)
	}
	if v.left > 0 && len(l.Text) > 0 && room.W() > 1 {
		room.Text(0, 0, screen.Dim, c.Glyphs().Ellipsis)
	}
}

// draw draws the text at x, which may be left of the canvas, and returns the column
// after it, or one beyond the canvas where there is more.
func (l *Line) draw(c *screen.Canvas, x int) int {
	at := 0
	piece := func(to int, role screen.Role) {
		if to > at && x <= c.W() {
			text := l.Text[at:to]
			if skip := -x; skip > 0 && len(text) > skip && ascii(text[:skip]) { // far to the left
				text, x = text[skip:], 0
			}
			if room := c.W() - x + 1; len(text) > 4*room+8 { // no more than is seen
				text = whole(text[:4*room+8])
			}
			width := term.Width(text)
			c.Text(x, 0, role, text)
			x += width
		}
		at = to
	}
	base := l.Kind.Role()
	for _, s := range l.Spans {
		piece(s.From, base)
		piece(s.To, s.Role)
	}
	piece(len(l.Text), base)
	return x
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// whole is a text without a character that was cut at its end.
func whole(s string) string {
	for i := len(s) - 1; i >= max(0, len(s)-4); i-- {
		if s[i] < 0x80 {
			return s[:i+1]
		}
		if s[i] >= 0xc0 {
			return s[:i]
		}
	}
	return s
}

// says is what a file's row below its head tells, "" for nothing.
func (f *File) says() string {
	var parts []string
	if f.Old != "" && f.Old != f.Path {
		parts = append(parts, "from "+f.Old)
	}
	switch {
	case f.OldMode != "" && f.NewMode != "":
		parts = append(parts, "mode "+f.OldMode+" to "+f.NewMode)
	case f.Op == Created && f.NewMode != "" && f.NewMode != "100644":
		parts = append(parts, "mode "+f.NewMode)
	}
	if f.Binary {
		parts = append(parts, "binary: "+f.sizes())
	}
	return strings.Join(parts, ", ")
}

// sizes are those of a binary as far as they are known.
func (f *File) sizes() string {
	was, now := Bytes(f.OldSize), Bytes(f.NewSize)
	switch {
	case f.Op == Created || f.Op != Deleted && f.OldSize < 0 && f.NewSize >= 0:
		return now
	case f.Op == Deleted || f.NewSize < 0 && f.OldSize >= 0:
		return was
	case f.OldSize < 0:
		return "its content differs"
	}
	return was + " to " + now
}

// Bytes is a number of bytes in words; a negative one is not known.
func Bytes(n int64) string {
	switch {
	case n < 0:
		return "of unknown size"
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
}
