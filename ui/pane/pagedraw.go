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

// labelWidth is the width of the column of labels on a page of usual width.
const labelWidth = 12

// labels is that of a page of some width: ten cells, which the longest words take, from 35 on.
func labels(w int) int { return min(labelWidth, w*2/7) }

type laidKey struct {
	text  string
	exact bool
	wide  bool
}

// pageLine is one line of a page as it is drawn.
type pageLine struct {
	label string
	lead  string // before the text, in the role of borders
	key   int    // bytes of the text that are a name
	text  string
	note  string // after the text
	role  screen.Role
	head  bool
	exact bool
	wide  bool
	cut   bool   // the text may be longer than the line
	slide bool   // it is a line of a table
	doc   *folds // the document that the line is of
	fold  foldLine
	item  Item
	spans []screen.Span // parts of the text with roles of their own
}

func (p *Page) lay() {
	p.lines, p.ends, p.broad = p.lines[:0], p.ends[:0], 0
	label := labels(p.w)
	was := p.laid
	p.laid = make(map[laidKey][]string, len(p.paras))
	for i := range p.paras {
		para := &p.paras[i]
		room := max(p.w-label-2, 1)
		if para.Wide {
			room += label
		}
		first := len(p.lines)
		switch doc := p.docs[string(para.JSON)]; {
		case para.Head:
			if first > 0 {
				p.lines = append(p.lines, pageLine{})
			}
			p.lines = append(p.lines, pageLine{label: para.Label, role: para.Role, head: true})
		case doc != nil:
			if doc.laid == nil || doc.room != room {
				doc.laid, doc.room = doc.lay(para, room), room
			}
			p.lines = append(p.lines, doc.laid...)
		case para.Flow != nil:
			for _, line := range para.Flow.Lines(room) {
				p.lines = append(p.lines, pageLine{text: line.Text, role: line.Role, spans: line.Spans, wide: para.Wide})
			}
		case para.Rows != nil:
			for _, row := range para.Rows {
				p.lines = append(p.lines, pageLine{lead: row.Lead, text: row.Text, note: row.Note, role: row.Role, wide: para.Wide, cut: true, item: row.Item})
			}
		case para.Table:
			for line := range strings.SplitSeq(para.Text, "\n") {
				line = term.Reveal(line)
				p.broad = max(p.broad, term.Width(line))
				p.lines = append(p.lines, pageLine{text: line, role: para.Role, exact: true, wide: true, slide: true})
			}
		default:
			for _, line := range p.wrapped(para, was, room) {
				p.lines = append(p.lines, pageLine{text: line, role: para.Role, exact: para.Exact || para.JSON != nil, wide: para.Wide})
			}
		}
		if !para.Head && first < len(p.lines) {
			p.lines[first].label = para.Label
		}
		p.ends = append(p.ends, len(p.lines)-1)
	}
	p.clamp()
}

// wrapped are the lines of a paragraph of text.
func (p *Page) wrapped(para *Para, was map[laidKey][]string, room int) []string {
	text, exact := para.Text, para.Exact
	if para.JSON != nil {
		text, exact = string(para.JSON), true
	}
	key := laidKey{text, exact, para.Wide}
	lines, ok := was[key]
	if !ok {
		if exact {
			for line := range strings.SplitSeq(text, "\n") {
				lines = append(lines, term.WrapLine(term.Reveal(line), room)...)
			}
		} else {
			lines = term.Wrap(text, room)
		}
	}
	p.laid[key] = lines
	return lines
}

// lay lays out the lines of a document that are in sight; what is folded takes one line,
// the rest is wrapped and nothing in it is hidden.
func (f *folds) lay(para *Para, room int) (out []pageLine) {
	for _, l := range f.root.lines(nil) {
		indent := min(2*l.of.depth, max(room/2, 0)/2*2)
		line := pageLine{lead: strings.Repeat(" ", indent), role: screen.Text, exact: true, wide: para.Wide, doc: f, fold: l}
		text, note := l.text()
		line.note = note
		key := ""
		if l.part == foldHead && l.of.key != "" {
			key = term.Reveal(l.of.key) + ": "
		}
		text = key + term.Reveal(text)
		width := max(room-indent-2, 1)
		if note != "" {
			line.text, line.key, line.cut = text, len(key), true
			out = append(out, line)
			continue
		}
		for _, piece := range term.WrapLine(text, width) {
			line.text, line.key = piece, min(len(key), len(piece))
			out = append(out, line)
			key = ""
		}
	}
	return out
}
