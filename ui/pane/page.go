package pane

import (
	"strings"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Para is one paragraph of a page.
type Para struct {
	Label string // in the left column; "" goes on below the one before
	Text  string // line breaks are kept
	Role  screen.Role
	Exact bool // text that must be judged exactly: hidden characters are shown
	Head  bool // a heading: Label only
	Wide  bool // text that takes the column of labels too: tables keep their shape
}

// labelWidth is the width of the column of labels on a page of usual width.
const labelWidth = 12

// Page lays paragraphs out and scrolls them. The zero value is empty. A
// paragraph that stays the same is not laid out again, however long it is.
type Page struct {
	paras []Para
	laid  map[laidKey][]string // the lines of paragraphs, for the width
	lines []pageLine
	ends  []int // last line of each paragraph
	w, h  int
	top   int
	find  string // in lower case
}

type laidKey struct {
	text  string
	exact bool
	wide  bool
}

type pageLine struct {
	label string
	text  string
	role  screen.Role
	head  bool
	exact bool
	wide  bool
}

// Set replaces the text and keeps the scroll position where it can.
func (p *Page) Set(paras []Para) {
	p.paras = paras
	p.lay()
}

// Resize says how much room there is.
func (p *Page) Resize(w, h int) {
	if w == p.w && h == p.h {
		return
	}
	wide := w != p.w
	p.w, p.h = w, h
	if wide {
		p.laid = nil
		p.lay()
	}
	p.clamp()
}

// Top scrolls to the start.
func (p *Page) Top() { p.top = 0 }

// Lines is the height of the whole text.
func (p *Page) Lines() int { return len(p.lines) }

// Reached reports whether the last line of paragraph i has come into view or
// lies above it.
func (p *Page) Reached(i int) bool {
	return p.h > 0 && i >= 0 && i < len(p.ends) && p.ends[i] < p.top+p.h
}

// AtEnd reports whether nothing is left below.
func (p *Page) AtEnd() bool { return p.top+p.h >= len(p.lines) }

func (p *Page) lay() {
	p.lines, p.ends = p.lines[:0], p.ends[:0]
	label := min(labelWidth, p.w/4)
	width := max(p.w-label-2, 1)
	was := p.laid
	p.laid = make(map[laidKey][]string, len(p.paras))
	for _, para := range p.paras {
		if para.Head {
			if len(p.lines) > 0 {
				p.lines = append(p.lines, pageLine{})
			}
			p.lines = append(p.lines, pageLine{label: para.Label, role: para.Role, head: true})
			p.ends = append(p.ends, len(p.lines)-1)
			continue
		}
		key := laidKey{para.Text, para.Exact, para.Wide}
		wrapped, ok := was[key]
		if !ok {
			room := width
			if para.Wide {
				room += label
			}
			wrapped = wrap(para, room)
		}
		p.laid[key] = wrapped
		first := para.Label
		for _, line := range wrapped {
			p.lines = append(p.lines, pageLine{label: first, text: line, role: para.Role, exact: para.Exact, wide: para.Wide})
			first = ""
		}
		p.ends = append(p.ends, len(p.lines)-1)
	}
	p.clamp()
}

func wrap(para Para, width int) []string {
	if !para.Exact {
		return term.Wrap(para.Text, width)
	}
	var out []string
	for text := range strings.SplitSeq(para.Text, "\n") {
		out = append(out, term.WrapLine(term.Reveal(text), width)...)
	}
	return out
}

func (p *Page) clamp() { p.top = max(0, min(p.top, len(p.lines)-p.h)) }

// Do scrolls by a named action.
func (p *Page) Do(action string) bool {
	switch action {
	case "up":
		p.top--
	case "down":
		p.top++
	case "half-up":
		p.top -= max(p.h/2, 1)
	case "half-down":
		p.top += max(p.h/2, 1)
	case "page-up":
		p.top -= max(p.h-1, 1)
	case "page-down":
		p.top += max(p.h-1, 1)
	case "top":
		p.top = 0
	case "bottom":
		p.top = len(p.lines)
	case "next-match":
		p.seek(1)
	case "prev-match":
		p.seek(-1)
	default:
		return false
	}
	p.clamp()
	return true
}

// Find highlights text and scrolls to its first place from here on.
func (p *Page) Find(text string) {
	p.find = strings.ToLower(text)
	if p.find != "" && (p.top >= len(p.lines) || !p.hit(p.top)) {
		p.seek(1)
		p.clamp()
	}
}

func (p *Page) hit(i int) bool {
	return strings.Contains(strings.ToLower(p.lines[i].text), p.find)
}

func (p *Page) seek(step int) {
	for i := p.top + step; p.find != "" && i >= 0 && i < len(p.lines); i += step {
		if p.hit(i) {
			p.top = i
			return
		}
	}
}

// Draw shows the window of the page.
func (p *Page) Draw(c *screen.Canvas) {
	for y := 0; y < c.H() && p.top+y < len(p.lines); y++ {
		line, label := p.lines[p.top+y], min(labelWidth, c.W()/4)
		if line.wide {
			label = 0
		}
		if line.head {
			x := c.Text(0, y, screen.Title, line.label)
			c.HLine(x+1, y, c.W()-x-1, screen.Border)
			continue
		}
		c.TextIn(0, y, label, screen.Dim, line.label)
		if line.exact {
			drawExact(c, label+1, y, line)
		} else {
			c.Text(label+1, y, line.role, line.text)
		}
		if p.find != "" && p.hit(p.top+y) {
			c.Text(label, y, screen.Match, string(c.Glyphs().Cursor))
		}
	}
	if len(p.lines) > c.H() && c.H() > 0 && c.W() > 0 {
		p.bar(c)
	}
}

// drawExact draws revealed hidden characters in a role of their own.
func drawExact(c *screen.Canvas, x, y int, line pageLine) {
	rest := line.text
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
		x = c.Text(x, y, line.role, rest[:i])
		x = c.Text(x, y, screen.Hidden, rest[i:j])
		rest = rest[j:]
	}
	c.Text(x, y, line.role, rest)
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
