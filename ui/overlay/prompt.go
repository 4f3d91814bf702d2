package overlay

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
)

// Prompt asks for one line.
type Prompt struct {
	letters
	Title string
	Input Input

	problem string
}

// Update answers Submit with the line, or Close.
func (p *Prompt) Update(msg tea.Msg) Action {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch k.String() {
		case "esc", "ctrl+c":
			return Action{Kind: Close}
		case "enter":
			if text := p.Input.Value(); text != "" {
				return Action{Kind: Submit, Text: text}
			}
			p.problem = "this can't be empty"
			return Action{}
		}
	}
	if p.Input.Update(msg) {
		p.problem = ""
	}
	return Action{}
}

// Draw draws the prompt.
func (p *Prompt) Draw(c *screen.Canvas) {
	in := box(c, 70, 5, p.Title)
	if in.H >= 3 {
		if p.problem != "" {
			c.TextIn(in.X, in.Y+2, in.W, screen.Bad, p.problem)
		} else {
			c.TextIn(in.X, in.Y+2, in.W, screen.Dim, "enter: go on   esc: cancel")
		}
	}
	if in.H >= 1 {
		p.Input.Draw(c, in.X, in.Y+min(1, in.H-1), in.W)
	}
}
