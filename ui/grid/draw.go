package grid

import (
	"math"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// gutter holds the cursor and the mark, left of the first column.
const gutter = 2

// Draw draws titles and the rows in sight into r. It scrolls as little as
// needed to keep the selected row in sight.
func (g *Grid) Draw(c *screen.Canvas, r screen.Rect, focused bool) {
	r = r.Clip(c.Bounds())
	if r.Empty() {
		return
	}
	c.Fill(r, screen.Text, ' ')
	_, n := g.Sight(r.H)
	g.lay(min(n, r.H-1), max(r.W-gutter, 0))
	g.titles(c, r)
	if g.Len() == 0 {
		if r.H > 1 {
			c.TextIn(r.X+gutter, r.Y+1, r.W-gutter, screen.Dim, g.Empty)
		}
		return
	}
	for i := range min(n, r.H-1) {
		g.drawRow(c, r, r.Y+1+i, g.top+i, focused)
	}
}

// lay reads n rows in sight and lays them out in w cells.
func (g *Grid) lay(n, w int) {
	fill, was := g.filler(), 0
	if fill >= 0 {
		was = g.widths[fill]
	}
	g.read(n, w)
	g.fit(w)
	if fill >= 0 && g.widths[fill] != was { // what fills is made for its width
		g.read(n, w)
	}
}

// Want is the width at which a pane of h lines cuts nothing in its rows, and that at
// which it has its spare columns too.
func (g *Grid) Want(h int) (least, all int) {
	_, n := g.Sight(h)
	if n == 0 {
		w := gutter + term.Width(g.Empty)
		return w, w
	}
	g.read(n, maxWant)
	return gutter + g.whole(Spare), gutter + g.whole(math.MaxInt)
}

// maxWant is the longest text that a column is made wide for.
const maxWant = 200

// read takes in n rows in sight, with how many cells at most they take; what is longer
// than most is not measured.
func (g *Grid) read(n, most int) {
	clear(g.cells)
	clear(g.needs)
	for i := range n {
		from := i * len(g.cols)
		if len(g.cells) < from+len(g.cols) {
			g.cells = append(g.cells, make([]content, from+len(g.cols)-len(g.cells))...)
		}
		g.row = g.cells[from : from+len(g.cols)]
		g.src.Row(g.top+i, g.set)
		for col := range g.row {
			if g.cols[col].Fill {
				g.needs[col] = g.cols[col].Min
				continue
			}
			text := g.row[col].text
			if g.cols[col].ID {
				text = Ending(text)
				g.row[col].text = text
			}
			w := most
			if len(text) <= 8*most { // a longer one hardly fits, and isn't worth measuring
				w = min(term.Width(text), most)
			}
			g.needs[col] = max(g.needs[col], w)
		}
	}
}

func (g *Grid) titles(c *screen.Canvas, r screen.Rect) {
	x := r.X + gutter
	for _, i := range g.shown {
		w := g.widths[i]
		if w == 0 {
			continue
		}
		tw := w
		if g.sort == i && w > 1 {
			tw--
		}
		if g.cols[i].Right {
			c.TextRight(x, r.Y, tw, screen.Title, g.cols[i].Title)
		} else {
			c.TextIn(x, r.Y, tw, screen.Title, g.cols[i].Title)
		}
		if tw < w {
			sign := c.Glyphs().Up
			if g.desc {
				sign = c.Glyphs().Down
			}
			c.Fill(screen.Rect{X: x + tw, Y: r.Y, W: 1, H: 1}, screen.Title, sign)
		}
		x += w + gap
	}
}

func (g *Grid) drawRow(c *screen.Canvas, r screen.Rect, y, i int, focused bool) {
	row := g.cells[(i-g.top)*len(g.cols):]
	x := r.X + gutter
	state := screen.Rect{X: r.X, Y: y} // the cell of the first column that tells how the thing is
	for _, col := range g.shown {
		w, k := g.widths[col], row[col]
		if w == 0 {
			continue
		}
		w = min(w, r.X+r.W-x)
		if state.W == 0 && w > 0 && k.role.State() {
			state.X, state.W = x, w
		}
		switch {
		case w <= 0:
		case g.cols[col].Right:
			c.TextRight(x, y, w, k.role, k.text)
		case g.cols[col].Middle:
			c.TextMiddle(x, y, w, k.role, k.text)
		default:
			c.TextIn(x, y, w, k.role, k.text)
		}
		x += w + gap
	}
	if _, marked := g.marks[g.src.ID(i)]; marked {
		c.Paint(screen.Rect{X: r.X, Y: y, W: r.W, H: 1}, screen.Marked)
		c.Fill(screen.Rect{X: r.X + 1, Y: y, W: 1, H: 1}, screen.Marked, c.Glyphs().Mark)
	}
	if i == g.at {
		role := screen.SelectedOff
		if focused {
			role = screen.Selected
		}
		c.Fill(screen.Rect{X: r.X, Y: y, W: 1, H: 1}, role, c.Glyphs().Cursor)
		c.Paint(screen.Rect{X: r.X, Y: y, W: state.X - r.X, H: 1}, role)
		rest := state.X + state.W
		c.Paint(screen.Rect{X: rest, Y: y, W: r.X + r.W - rest, H: 1}, role)
	}
}
