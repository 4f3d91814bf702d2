package overlay

import (
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// maxInput bounds one line of input, in characters.
const maxInput = 16 << 10

// Input edits one line of printable text: what is shown is what is kept. The zero value is
// empty.
type Input struct{ line *textinput.Model }

func (in *Input) model() *textinput.Model {
	if in.line == nil {
		m := textinput.New()
		m.Prompt, m.CharLimit = "", maxInput
		m.SetStyles(textinput.Styles{
			Focused: textinput.StyleState{Text: screen.Look(screen.Input)},
			Cursor:  textinput.CursorStyle{Color: screen.LookColor(screen.Input)}, // one that does not blink
		})
		m.KeyMap.Paste.SetEnabled(false)             // from a clipboard of the engine's machine
		m.KeyMap.DeleteWordForward.SetEnabled(false) // it panics at the last character
		m.Focus()
		in.line = &m
	}
	return in.line
}

// Value is the text.
func (in *Input) Value() string { return release(in.model().Value()) }

// BeforeCursor is the text left of the cursor.
func (in *Input) BeforeCursor() string {
	return release(string([]rune(in.model().Value())[:in.model().Position()]))
}

// SetValue replaces the text and puts the cursor at its end.
func (in *Input) SetValue(s string) {
	in.model().Reset()
	in.Insert(s)
}

// Insert types s at the cursor, made printable; what exceeds the bound of
// 16384 characters is left out.
func (in *Input) Insert(s string) {
	in.take(tea.PasteMsg{Content: hold(term.Clean(clip(s, 4*maxInput)))})
}

// hold and release take the sign for what can't be shown past the toolkit, which drops it.
// Text from outside can't hold what stands for it: that can't be shown either.
func hold(s string) string { return strings.ReplaceAll(s, string(term.Replacement), heldReplacement) }

func release(s string) string {
	return strings.ReplaceAll(s, heldReplacement, string(term.Replacement))
}

const heldReplacement = "\ue0fd"

func clip(s string, n int) string { return s[:min(len(s), n)] }

// Update edits the text: letters, a paste, and the usual keys of a line. It
// tells whether the text or the cursor is another now.
func (in *Input) Update(msg tea.Msg) bool {
	value, before := in.Value(), in.BeforeCursor()
	switch msg := msg.(type) {
	case tea.PasteMsg:
		in.Insert(msg.Content)
	case tea.KeyPressMsg:
		msg.Text = hold(msg.Text)
		in.take(msg)
	}
	return in.Value() != value || in.BeforeCursor() != before
}

// take edits by a message. Pieces that are clean alone need not be so together:
// a mark may follow more of its kind, or nothing.
func (in *Input) take(msg tea.Msg) {
	m := in.model()
	*m, _ = m.Update(msg)
	if clean := term.Clean(in.Value()); clean != in.Value() {
		at := utf8.RuneCountInString(term.Clean(in.BeforeCursor()))
		m.SetValue(hold(clean))
		m.SetCursor(at)
	}
}

// Draw draws the text in w cells, moved so that the cursor is in sight, and
// shows the cursor there.
func (in *Input) Draw(c *screen.Canvas, x, y, w int) {
	m := in.model()
	at := m.Position()
	m.SetWidth(w - 1)
	m.CursorEnd()
	m.CursorStart()
	m.SetCursor(at)
	c.Widget(screen.Rect{X: x, Y: y, W: w, H: 1}, screen.Input, m.View())
	m.SetWidth(0) // with one, a key that goes over a word measures the line at each letter
}

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
