package graph

import (
	"time"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Sizes of boxes and of the room for lines between them, in cells.
const (
	leastBox, mostBox   = 22, 44
	leastGap, labelGap  = 5, 18
	flatBox, tallBox    = 3, 4
	tallFrom            = 30 // height from which boxes are tall
	lanes, labelledFrom = 3, 12
)

// frame is where things are on a canvas of one size.
type frame struct {
	box, gap  int // widths
	pitch     int // from one box to the one below
	high      int // of a box
	first, n  int // columns in sight
	left, top int // of the picture
}

// fit shares the room out: as many columns as there is room for, the one of
// the cursor in the middle of them.
func (m *Map) fit(w, h int) frame {
	f := frame{high: flatBox, pitch: flatBox, n: min(max((w+leastGap)/(leastBox+leastGap), 1), len(m.cols)), gap: leastGap}
	if h >= tallFrom {
		f.high, f.pitch = tallBox, tallBox+1
	}
	if f.n > 1 {
		if room := (w - f.n*leastBox) / (f.n - 1); room >= labelGap {
			f.gap = labelGap
		}
	}
	f.box = min((w-(f.n-1)*f.gap)/f.n, mostBox)
	f.first = min(max(m.col[m.at]-f.n/2, 0), len(m.cols)-f.n)
	f.left = max((w-f.n*f.box-(f.n-1)*f.gap)/2, 0)
	// The box under the cursor comes into sight.
	y := m.slot[m.at] * f.pitch
	m.top = min(m.top, y)
	if y+f.high > m.top+h {
		m.top = y + f.high - h
	}
	m.top = max(m.top, 0)
	f.top = m.top
	return f
}

// x is where a column begins.
func (f frame) x(col int) int { return f.left + (col-f.first)*(f.box+f.gap) }

// mid is the line of a box that lines lead to.
func (m *Map) mid(f frame, i int) int { return m.slot[i]*f.pitch + 1 - f.top }

// Draw draws the part around the cursor; focused says that the cursor has the
// keys.
func (m *Map) Draw(c *screen.Canvas, now time.Time, focused bool) {
	if m.Empty() || c.W() < 8 || c.H() < flatBox {
		return
	}
	f := m.fit(c.W(), c.H())
	for gap := f.first; gap < f.first+f.n-1; gap++ {
		m.lines(c, f, gap)
	}
	for col := f.first; col < f.first+f.n; col++ {
		for _, i := range m.cols[col] {
			if y := m.mid(f, i) - 1; y+f.high > 0 && y < c.H() {
				m.box(c, f, i, now, focused)
			}
		}
	}
	for col, x := range map[int]int{f.first - 1: 0, f.first + f.n: c.W() - 1} { // there is more that way
		if col >= 0 && col < len(m.cols) {
			sign := c.Glyphs().Ellipsis
			c.Text(x, m.mid(f, m.at), screen.Accent, sign)
		}
	}
}

func (m *Map) box(c *screen.Canvas, f frame, i int, now time.Time, focused bool) {
	n := m.nodes[i]
	x, y := f.x(m.col[i]), m.mid(f, i)-1
	role := screen.Border
	if i == 0 {
		role = screen.BorderFocus
	}
	c.Box(screen.Rect{X: x, Y: y, W: f.box, H: f.high}, role, "")
	head := Head(n)
	if w := term.Width(head); w < f.box-4 {
		c.Text(x+2, y, screen.Title, " "+head+" ")
	} else {
		c.TextIn(x+2, y, f.box-4, screen.Title, head)
	}
	text, note := n.Text, Brief(n.Node.ID)
	if text == "" {
		text, note = n.Node.ID, ""
	}
	if !n.TS.IsZero() {
		note += " " + n.TS.Time().In(now.Location()).Format("15:04:05")
	}
	body := screen.Text
	if i == m.at {
		body = screen.SelectedOff
		if focused {
			body = screen.Selected
		}
		c.Fill(screen.Rect{X: x + 1, Y: y, W: 1, H: 1}, body, c.Glyphs().Cursor)
	}
	c.TextIn(x+1, y+1, f.box-2, body, text)
	if f.high == tallBox {
		c.TextIn(x+1, y+2, f.box-2, screen.Dim, note)
	}
}

// Bits of a joint.
const (
	above, below, before, behind = 1, 2, 4, 8
)

// lines draws the edges from one column to the next, those of the selected
// node last and brighter. Edges of one node share a lane.
func (m *Map) lines(c *screen.Canvas, f frame, col int) {
	x, h := f.x(col)+f.box, c.H()
	cells, bright := make([]uint8, f.gap*h), make([]bool, f.gap*h)
	put := func(i, y int, bits uint8, on bool) {
		if y >= 0 && y < h {
			cells[y*f.gap+i] |= bits
			bright[y*f.gap+i] = bright[y*f.gap+i] || on
		}
	}
	type label struct {
		y    int
		text string
		on   bool
	}
	var labels []label
	seen := map[int]int{}
	for _, e := range m.edges {
		if m.col[e.From] != col || m.col[e.To] != col+1 {
			continue
		}
		lane, known := seen[e.From]
		if !known {
			lane = 1 + len(seen)%min(lanes, f.gap-3)
			seen[e.From] = lane
		}
		from, to, on := m.mid(f, e.From), m.mid(f, e.To), e.From == m.at || e.To == m.at
		for i := range lane {
			put(i, from, before|behind, on)
		}
		for i := lane + 1; i < f.gap; i++ {
			put(i, to, before|behind, on)
		}
		if from == to {
			put(lane, from, before|behind, on)
		} else {
			down, up := uint8(below), uint8(above)
			if to < from {
				down, up = up, down
			}
			put(lane, from, before|down, on)
			put(lane, to, behind|up, on)
			for y := max(min(from, to)+1, 0); y < min(max(from, to), h); y++ {
				put(lane, y, above|below, on)
			}
		}
		labels = append(labels, label{to, Word(string(e.Type)), on})
	}
	for i, bits := range cells {
		if bits == 0 {
			continue
		}
		role := screen.Border
		if bright[i] {
			role = screen.Accent
		}
		at := screen.Rect{X: x + i%f.gap, Y: i / f.gap, W: 1, H: 1}
		if i%f.gap == f.gap-1 && bits&before != 0 {
			c.Fill(at, role, c.Glyphs().Cursor)
			continue
		}
		c.Fill(at, role, c.Glyphs().Joints[bits])
	}
	if f.gap < labelledFrom {
		return
	}
	for _, l := range labels {
		role := screen.Dim
		if l.on {
			role = screen.Accent
		}
		room := f.gap - lanes - 3
		w := min(term.Width(l.text), room)
		c.TextIn(x+lanes+1+(room-w)/2, l.y, w, role, l.text)
	}
}
