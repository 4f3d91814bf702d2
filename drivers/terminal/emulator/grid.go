package emulator

import (
	"slices"

	uv "github.com/charmbracelet/ultraviolet"

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
