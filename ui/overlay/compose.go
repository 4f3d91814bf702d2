package overlay

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
)

// Compose asks for a text of any number of lines. What is pasted stays as it
// is, with its line breaks and tabs, and never acts.
type Compose struct {
	Title  string
	Offers []Offer // what tab completes

	text    area
	way     *completion // that tab is on
	chord   bool        // ctrl+x was pressed
	problem string
}

// NewCompose makes an empty one.
func NewCompose(title string) *Compose {
	return &Compose{Title: title, text: area{tabs: true, lines: [][]rune{{}}}}
}

// Value is the text so far.
func (p *Compose) Value() string { return p.text.value() }

// SetValue puts another text in its place, and the cursor at its end.
func (p *Compose) SetValue(s string) {
	p.text.set(s)
	p.text.row = len(p.text.lines) - 1
	p.text.col = len(p.text.lines[p.text.row])
}

// Typing is true.
func (p *Compose) Typing() bool { return true }

// Update answers Submit with the text, Edit when it is to be edited elsewhere,
// or Close.
func (p *Compose) Update(msg tea.Msg) Action {
	if paste, ok := msg.(tea.PasteMsg); ok {
		p.text.insert(paste.Content)
		p.problem, p.way = "", nil
		return Action{}
	}
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return Action{}
	}
	chord := p.chord
	p.chord = false
	if k.String() == "tab" {
		if !p.complete() {
			p.text.insert("\t")
		}
		return Action{}
	}
	p.way = nil
	switch key := k.String(); {
	case key == "esc" || key == "ctrl+c":
		return Action{Kind: Close}
	case key == "ctrl+g" || chord && key == "ctrl+e":
		return Action{Kind: Edit, Text: p.Value()}
	case key == "ctrl+x":
		p.chord = true
	case key == "alt+enter" || key == "shift+enter" || key == "ctrl+j":
		p.text.insert("\n")
	case key == "enter":
		if strings.TrimSpace(p.Value()) == "" {
			p.problem = "this can't be empty"
			return Action{}
		}
		return Action{Kind: Submit, Text: p.Value()}
	case p.text.key(k):
		p.problem = ""
	}
	return Action{}
}

// Draw draws it, as tall as its text needs and the canvas allows.
func (p *Compose) Draw(c *screen.Canvas) {
	h := min(max(len(p.text.lines), 3)+3, c.H()-2)
	in := box(c, max(70, c.W()*2/3), h, p.Title)
	if in.H < 2 {
		return
	}
	p.text.draw(c, screen.Rect{X: in.X, Y: in.Y, W: in.W, H: in.H - 1})
	hint, role := "enter: send   ctrl+j: new line   ctrl+g: $EDITOR   esc: cancel", screen.Dim
	if p.problem != "" {
		hint, role = p.problem, screen.Bad
	}
	last := screen.Rect{X: in.X, Y: in.Y + in.H - 1, W: in.W, H: 1}
	if p.problem != "" || !p.offering(c, last) {
		c.TextIn(last.X, last.Y, last.W, role, hint)
	}
}
