package emulator

import (
	"image/color"
	"slices"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/terminal"
)

// grid is a screen: places that are written to and scrolled. Its methods take
// places within it.
type grid struct {
	cols, rows  int
	lines       []*row
	top, bottom int // the first and the last line of what scrolls
	saved       cursor
	leaves      func(*row) // takes a line that leaves at the top; nil for none
}

// cursor is where the next character goes, and how it looks.
type cursor struct {
	x, y   int
	over   bool // the last column is written: the next character goes on below
	pen    terminal.Style
	sgr    uv.Style // the same, as it was said
	origin bool     // lines are counted from the top of what scrolls
	lines  [2]bool
	shift  int // which of the two sets of characters is on; lines says that it draws lines
}

func newGrid(size terminal.Size, leaves func(*row)) *grid {
	g := &grid{cols: size.Cols, rows: size.Rows, bottom: size.Rows - 1, leaves: leaves}
	for range size.Rows {
		g.lines = append(g.lines, g.empty())
	}
	return g
}

func (g *grid) empty() *row { return &row{cells: make([]cell, g.cols)} }

// change is a line that is about to be changed.
func (g *grid) change(y int) []cell {
	l := g.lines[y]
	l.drawn = false
	return l.cells
}

// erase blanks places from x up to end, in the colour of the ground.
func (g *grid) erase(y, x, end int, ground terminal.Color) {
	cells := g.change(y)
	split(cells, x)
	split(cells, end)
	wipe(cells[x:end], ground)
}

// insert makes room for n places; what is pushed past the end is lost.
func (g *grid) insert(y, x, n int, ground terminal.Color) {
	cells := g.change(y)
	n = min(n, g.cols-x)
	split(cells, x)
	split(cells, g.cols-n)
	copy(cells[x+n:], cells[x:])
	wipe(cells[x:x+n], ground)
}

// remove takes n places away; what stands behind them moves up.
func (g *grid) remove(y, x, n int, ground terminal.Color) {
	cells := g.change(y)
	n = min(n, g.cols-x)
	split(cells, x)
	split(cells, x+n)
	copy(cells[x:], cells[x+n:])
	wipe(cells[g.cols-n:], ground)
}

// up moves the lines from top to bottom up by n. Lines that leave the screen at
// its top are given away.
func (g *grid) up(top, bottom, n int, ground terminal.Color) {
	n = min(n, bottom-top+1)
	if n <= 0 {
		return
	}
	if top == 0 && g.leaves != nil {
		for _, l := range g.lines[:n] {
			g.leaves(l)
		}
	}
	part := g.lines[top : bottom+1]
	turn(part, n)
	g.blank(part[len(part)-n:], ground)
}

// down moves the lines from top to bottom down by n.
func (g *grid) down(top, bottom, n int, ground terminal.Color) {
	n = min(n, bottom-top+1)
	if n <= 0 {
		return
	}
	part := g.lines[top : bottom+1]
	turn(part, len(part)-n)
	g.blank(part[:n], ground)
}

// turn puts the first n at the end.
func turn(rows []*row, n int) {
	first := slices.Clone(rows[:n])
	copy(rows, rows[n:])
	copy(rows[len(rows)-n:], first)
}

func (g *grid) blank(rows []*row, ground terminal.Color) {
	for _, l := range rows {
		l.drawn = false
		wipe(l.cells, ground)
	}
}

// resize gives it another size, so that the line of the cursor, y, stays on it; by
// is how far that has moved up.
func (g *grid) resize(to terminal.Size, y int) (by int) {
	if by = max(0, y-to.Rows+1); by > 0 {
		g.up(0, g.rows-1, by, 0)
	}
	g.cols, g.rows, g.top, g.bottom = to.Cols, to.Rows, 0, to.Rows-1
	for len(g.lines) < to.Rows {
		g.lines = append(g.lines, g.empty())
	}
	g.lines = g.lines[:to.Rows]
	for _, l := range g.lines {
		l.drawn = false
		split(l.cells, to.Cols)
		if grow := to.Cols - len(l.cells); grow > 0 {
			l.cells = append(l.cells, make([]cell, grow)...)
		}
		l.cells = l.cells[:to.Cols]
	}
	g.saved.x, g.saved.y = min(g.saved.x, to.Cols-1), min(max(g.saved.y-by, 0), to.Rows-1)
	g.saved.over = false
	return by
}

// cell is one place of a line. The zero value is blank.
type cell struct {
	r     rune    // its character, or the first of it; 0 for none
	all   *string // of one that has several parts
	wide  bool    // takes the next place too
	tail  bool    // is the second place of a wide one
	style terminal.Style
}

// plain reports whether it is one of ASCII, or nothing.
func (c *cell) plain() bool { return c.r < 0x7f && c.all == nil && !c.tail }

func (c *cell) blank() bool {
	return (c.r == 0 || c.r == ' ' && c.all == nil) && !c.tail && c.style.BG == 0 && c.style.Attrs&(terminal.Underline|terminal.Reverse|terminal.Strike) == 0
}

// split parts a wide character that stands on both sides of a place.
func split(cells []cell, x int) {
	if x > 0 && x < len(cells) && cells[x].tail {
		cells[x-1] = cell{style: cells[x-1].style}
		cells[x] = cell{style: cells[x].style}
	}
}

func wipe(cells []cell, ground terminal.Color) {
	clear(cells)
	if ground != 0 {
		for i := range cells {
			cells[i].style.BG = ground
		}
	}
}

// row is one line of the screen.
type row struct {
	cells []cell
	line  terminal.Line // what is to be seen of it, while drawn
	drawn bool
}

// seen is what is to be seen of it, without the blanks at its end. It is made once
// for each change, and never changed.
func (l *row) seen() terminal.Line {
	if l.drawn {
		return l.line
	}
	l.line, l.drawn = nil, true
	cells := l.cells
	for len(cells) > 0 && cells[len(cells)-1].blank() {
		cells = cells[:len(cells)-1]
	}
	for len(cells) > 0 {
		c, n := &cells[0], 1
		for c.plain() && n < len(cells) && cells[n].plain() && cells[n].style == c.style {
			n++
		}
		if c.wide {
			n = 2
		}
		l.line = append(l.line, terminal.Span{Text: textOf(cells[:n]), Cells: n, Style: c.style})
		cells = cells[n:]
	}
	return l.line
}

// textOf is the text of places.
func textOf(cells []cell) string {
	text := make([]byte, 0, 128)
	for i := range cells {
		switch c := &cells[i]; {
		case c.tail:
		case c.all != nil:
			text = append(text, *c.all...)
		default:
			text = utf8.AppendRune(text, max(c.r, ' '))
		}
	}
	return string(text)
}

// maxHistory bounds the lines that have left the screen, in bytes.
const maxHistory = 8 << 20

func weight(l terminal.Line) int {
	n := 64
	for i := range l {
		n += 48 + len(l[i].Text)
	}
	return n
}

// restyle changes how characters look from now on, as SGR says.
func (c *cursor) restyle(params ansi.Params) {
	uv.ReadStyle(params, &c.sgr)
	c.pen = terminal.Style{FG: colorOf(c.sgr.Fg), BG: colorOf(c.sgr.Bg)}
	for i, attr := range [...]uint8{uv.AttrBold, uv.AttrFaint, uv.AttrItalic, 0, uv.AttrReverse, uv.AttrConceal, uv.AttrBlink, uv.AttrStrikethrough} {
		if c.sgr.Attrs&attr != 0 {
			c.pen.Attrs |= 1 << i
		}
	}
	if c.sgr.Underline != uv.UnderlineNone {
		c.pen.Attrs |= terminal.Underline
	}
}

func colorOf(c color.Color) terminal.Color {
	switch c := c.(type) {
	case nil:
		return 0
	case ansi.BasicColor:
		return terminal.Palette(uint8(c))
	case ansi.IndexedColor:
		return terminal.Palette(uint8(c))
	default:
		r, g, b, _ := c.RGBA()
		return terminal.RGB(uint8(r>>8), uint8(g>>8), uint8(b>>8))
	}
}
