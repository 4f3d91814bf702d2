package overlay

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
)

// Editor edits a JSON document over several lines. Characters that a screen
// can't show for what they are stand as \u escapes, which mean the same in
// JSON, so nothing in the document is hidden from the editor.
type Editor struct {
	letters
	Title string
	Check func(text string) error // may be nil; a refusal keeps the editor open and is shown

	area    area
	start   string
	problem string
	leaving bool // esc was pressed once over changed text
}

// NewEditor opens an editor on text.
func NewEditor(title, text string, check func(string) error) *Editor {
	e := &Editor{Title: title, Check: check}
	e.area.set(text)
	e.start = e.area.value()
	return e
}

// Update answers Submit with the text on ctrl+x or alt+enter, or Close on esc,
// which asks once more when the text was changed.
func (e *Editor) Update(msg tea.Msg) Action {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		if p, ok := msg.(tea.PasteMsg); ok {
			e.area.insert(p.Content)
			e.problem, e.leaving = "", false
		}
		return Action{}
	}
	switch k.String() {
	case "esc", "ctrl+c":
		if e.leaving || e.area.value() == e.start {
			return Action{Kind: Close}
		}
		e.leaving = true
		return Action{}
	case "ctrl+x", "alt+enter":
		if k.IsRepeat {
			return Action{}
		}
		text := e.area.value()
		if e.Check != nil {
			if err := e.Check(text); err != nil {
				e.problem = err.Error()
				return Action{}
			}
		}
		return Action{Kind: Submit, Text: text}
	}
	e.leaving = false
	if e.area.key(k) {
		e.problem = ""
	}
	return Action{}
}

// Draw draws the editor.
func (e *Editor) Draw(c *screen.Canvas) {
	h := max(min(len(e.area.lines)+4, c.H()-2), min(c.H(), 12))
	in := box(c, max(min(c.W()-4, 100), min(c.W(), 40)), h, e.Title)
	if in.H < 1 {
		return
	}
	y := in.Y + in.H - 1
	switch {
	case e.leaving:
		c.TextIn(in.X, y, in.W, screen.Warn, "esc again drops the changes; any other key goes on")
	case e.problem != "":
		c.TextIn(in.X, y, in.W, screen.Bad, strings.ReplaceAll(e.problem, "\n", " "))
	default:
		c.TextIn(in.X, y, in.W, screen.Dim, "ctrl+x: done   esc: cancel")
	}
	e.area.draw(c, screen.Rect{X: in.X, Y: in.Y, W: in.W, H: in.H - 1})
}
