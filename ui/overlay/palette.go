package overlay

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
)

// Candidate completes the last word of the palette's line.
type Candidate struct {
	Text string // replaces the last word, or with Line all of it
	Line bool
	Help string
	Key  string // the key that does the same, if any
}

// Palette is the command line at the bottom of the screen, with completion
// and history. It asks for candidates with a Complete action whenever its text
// changes; give them back through SetCandidates.
type Palette struct {
	letters
	Input   Input
	History []string // oldest first

	cands  []Candidate
	at     int    // the chosen candidate, -1 for none
	top    int    // the first one in sight
	typed  string // the line up to the cursor before a candidate was chosen
	tail   string // and after the cursor
	past   int    // steps back in the history, 0 for none
	prefix string // what was typed before going back
	eager  int    // tab was pressed before the candidates came: which way to go then
}

// NewPalette opens a palette with a line to go on with.
func NewPalette(line string, history []string) *Palette {
	p := &Palette{History: history, at: -1}
	p.Input.SetValue(line)
	return p
}

// Ask is the action to perform after opening: candidates for the line there is.
func (p *Palette) Ask() Action { return Action{Kind: Complete, Text: p.Input.BeforeCursor()} }

// SetCandidates shows candidates for line; they are ignored when the line has
// changed meanwhile. A tab that came before them takes effect now, which may
// ask for the next ones.
func (p *Palette) SetCandidates(line string, cands []Candidate) Action {
	if line != p.Input.BeforeCursor() || p.at >= 0 {
		return Action{}
	}
	const most = 500
	p.cands, p.at, p.top = cands[:min(len(cands), most)], -1, 0
	by := p.eager
	p.eager = 0
	if by == 0 || len(p.cands) == 0 {
		return Action{}
	}
	return p.cycle(by)
}

// Update answers Submit with the line, Complete, or Close.
func (p *Palette) Update(msg tea.Msg) Action {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return p.edit(msg)
	}
	switch k.String() {
	case "esc":
		if p.at >= 0 {
			p.Input.SetValue(p.typed + p.tail)
			return p.changed()
		}
		return Action{Kind: Close}
	case "ctrl+c":
		return Action{Kind: Close}
	case "backspace":
		if p.Input.Value() == "" {
			return Action{Kind: Close}
		}
	case "enter":
		if line := strings.TrimSpace(p.Input.Value()); line != "" && !k.IsRepeat {
			return Action{Kind: Submit, Text: line}
		}
		return Action{}
	case "tab":
		return p.cycle(1)
	case "shift+tab":
		return p.cycle(-1)
	case "down", "ctrl+n":
		if p.past > 0 {
			return p.recall(-1)
		}
		return p.cycle(1)
	case "up", "ctrl+p":
		if p.at >= 0 {
			return p.cycle(-1)
		}
		return p.recall(1)
	}
	return p.edit(msg)
}

// edit changes the line and asks for new candidates.
func (p *Palette) edit(msg tea.Msg) Action {
	if !p.Input.Update(msg) {
		return Action{}
	}
	p.past = 0
	return p.changed()
}

func (p *Palette) changed() Action {
	p.cands, p.at, p.eager = nil, -1, 0
	return p.Ask()
}

// cycle chooses the next candidate. A single candidate is taken at once, so
// that the next tab completes the next word.
func (p *Palette) cycle(by int) Action {
	n := len(p.cands)
	if n == 0 {
		p.eager = by
		return p.Ask()
	}
	if p.at < 0 {
		p.typed = p.Input.BeforeCursor()
		p.tail = strings.TrimPrefix(p.Input.Value(), p.typed)
		if by < 0 {
			p.at = n - 1
		} else {
			p.at = 0
		}
	} else {
		p.at = (p.at + by + n) % n
	}
	line := p.cands[p.at].Text
	if !p.cands[p.at].Line {
		line = replaceLast(p.typed, line)
	}
	p.Input.SetValue(line + p.tail)
	if n == 1 {
		if !strings.HasSuffix(p.Input.Value(), " ") {
			p.Input.Insert(" ")
		}
		return p.changed()
	}
	return Action{}
}

// recall goes to an earlier or later line that begins with what was typed.
func (p *Palette) recall(by int) Action {
	if p.past == 0 {
		p.prefix = p.Input.Value()
	}
	for i := p.past + by; i >= 0 && i <= len(p.History); i += by {
		line := p.prefix
		if i > 0 {
			line = p.History[len(p.History)-i]
		}
		if strings.HasPrefix(line, p.prefix) {
			p.past = i
			p.Input.SetValue(line)
			return p.changed()
		}
	}
	return Action{}
}

// replaceLast puts text in the place of the word at the end of line; a line
// that ends in a blank has an empty word there. Quotes hold a word together.
func replaceLast(line, text string) string {
	start, quote := 0, rune(0)
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == ' ':
			start = i + 1
		}
	}
	return line[:start] + text
}

// Draw draws the line at the bottom and the candidates above it.
func (p *Palette) Draw(c *screen.Canvas) {
	if c.H() < 1 || c.W() < 2 {
		return
	}
	y := c.H() - 1
	c.Fill(screen.Rect{X: 0, Y: y, W: c.W(), H: 1}, screen.Input, ' ')
	c.Text(0, y, screen.FooterKey, ":")
	p.Input.Draw(c, 1, y, c.W()-1)
	h := min(len(p.cands), 8, max(y-1, 0))
	if h == 0 {
		return
	}
	p.top = screen.Window(p.top, max(p.at, 0), h, len(p.cands))
	nameW := 8
	for i := range h {
		nameW = max(nameW, len(p.cands[p.top+i].Text)+1)
	}
	frame := screen.Rect{X: 0, Y: y - h - 2, W: c.W(), H: h + 2}
	c.Fill(frame, screen.Text, ' ')
	in := c.Box(frame, screen.BorderFocus, "")
	nameW = min(nameW, in.W/2)
	for i := range h {
		n, row := p.top+i, in.Y+i
		k := p.cands[n]
		x := c.TextIn(in.X+1, row, nameW, screen.Accent, k.Text)
		keyW := 0
		if k.Key != "" {
			keyW = min(10, in.W/4)
			c.TextRight(in.X+in.W-keyW-1, row, keyW, screen.Title, k.Key)
		}
		c.TextIn(x+1, row, in.X+in.W-x-keyW-3, screen.Dim, k.Help)
		if n == p.at {
			c.Text(in.X, row, screen.Selected, string(c.Glyphs().Cursor))
			c.Paint(screen.Rect{X: in.X, Y: row, W: in.W, H: 1}, screen.Selected)
		}
	}
}
