package overlay

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Confirm asks before something costly or irreversible. Enter, a paste and a
// key that repeats never confirm; the key that opened the question doesn't
// either.
type Confirm struct {
	Title   string
	Verb    string   // what y does: "cancel 3 tasks"
	Lines   []string // exactly what is affected, and at which revision
	Trigger string   // the key that opened it, as the toolkit spells it
	Type    string   // when set, this must be typed: a name or a count

	input Input
	wrong bool
}

// yes is the key that confirms: y, or o when y opened the question.
func (q *Confirm) yes() string {
	if strings.EqualFold(q.Trigger, "y") {
		return "o"
	}
	return "y"
}

// Update answers Yes or Close.
func (q *Confirm) Update(msg tea.Msg) Action {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok || k.IsRepeat {
		return Action{}
	}
	if q.Type != "" {
		return q.typed(k)
	}
	switch k.String() {
	case q.yes():
		return Action{Kind: Yes}
	case "n", "N", "q", "esc", "enter", "ctrl+c":
		return Action{Kind: Close}
	}
	return Action{}
}

func (q *Confirm) typed(k tea.KeyPressMsg) Action {
	switch k.String() {
	case "esc", "ctrl+c":
		return Action{Kind: Close}
	case "enter":
		if q.input.Value() == q.Type {
			return Action{Kind: Yes, Text: q.Type}
		}
		q.wrong = true
		return Action{}
	}
	if q.input.Update(k) {
		q.wrong = false
	}
	return Action{}
}

// Draw draws the question.
func (q *Confirm) Draw(c *screen.Canvas) {
	const width = 64
	w := min(width, c.W()) - 4
	lines := make([]string, 0, len(q.Lines))
	for _, l := range q.Lines {
		lines = append(lines, term.Wrap(l, max(w, 1))...)
	}
	const below = 3 // a blank line, the answer, the hint
	shown := min(len(lines), max(c.H()-below-2, 0))
	in := box(c, width, shown+below+2, q.Title)
	cut := shown < len(lines)
	for i := range shown {
		if cut && i == shown-1 {
			c.TextIn(in.X, in.Y+i, in.W, screen.Dim, fmt.Sprintf("and %d more lines", len(lines)-shown+1))
			break
		}
		c.TextIn(in.X, in.Y+i, in.W, screen.Text, lines[i])
	}
	if in.H >= 1 {
		q.answer(c, in)
	}
}

// answer draws the keys or the input, and a hint below it where there is room.
func (q *Confirm) answer(c *screen.Canvas, in screen.Rect) {
	y, hint, role := in.Y+max(in.H-2, 0), "n, esc or enter: leave it as it is", screen.Dim
	if q.Type == "" {
		x := c.TextIn(in.X, y, min(2, in.W), screen.FooterKey, q.yes()+":")
		c.TextIn(x, y, in.X+in.W-x, screen.Danger, " "+q.Verb)
	} else {
		q.input.Draw(c, in.X, y, in.W)
		hint = "type " + q.Type + " to " + q.Verb + ", esc: leave it as it is"
		if q.wrong {
			hint, role = "that is not "+q.Type, screen.Bad
		}
	}
	if in.H >= 2 {
		c.TextIn(in.X, y+1, in.W, role, hint)
	}
}

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
