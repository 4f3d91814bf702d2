package grid

import "swarmdeck/ui/screen"

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
	if g.wide != r.W {
		layout(g.cols, max(r.W-gutter, 0), g.widths)
		g.wide = r.W
	}
	g.titles(c, r)
	g.page = max(r.H-1, 1)
	g.sync()
	n := g.Len()
	if n == 0 {
		if r.H > 1 {
			c.TextIn(r.X+gutter, r.Y+1, r.W-gutter, screen.Dim, g.Empty)
		}
		return
	}
	g.scroll(n)
	for i := 0; i < r.H-1 && g.top+i < n; i++ {
		g.drawRow(c, r, r.Y+1+i, g.top+i, focused)
	}
}

// scroll brings the selected row in sight and leaves no room at the end.
func (g *Grid) scroll(n int) {
	if g.at < g.top {
		g.top = g.at
	}
	if g.at >= g.top+g.page {
		g.top = g.at - g.page + 1
	}
	g.top = max(0, min(g.top, n-g.page))
}

func (g *Grid) titles(c *screen.Canvas, r screen.Rect) {
	x := r.X + gutter
	for i := range g.cols {
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
	clear(g.row)
	g.src.Row(i, g.set)
	x := r.X + gutter
	state := screen.Rect{X: r.X, Y: y} // the cell of the first column that tells how the thing is
	for col := range g.cols {
		w, k := g.widths[col], g.row[col]
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
	marked := len(g.marks) > 0 && g.Marked(g.src.ID(i))
	if marked {
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
