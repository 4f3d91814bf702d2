package overlay

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/core"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// unfolded bounds the lines that are shown: each key goes over all of them.
const unfolded = 200

// Compose asks for a text of any number of lines. What is pasted stays as it
// is, with its line breaks and tabs, and never acts; what is long is folded
// into one line that stands for it.
type Compose struct {
	letters
	Title  string
	Offers []Offer // what tab completes

	text    textarea.Model
	folds   []string    // lines that stand for texts, each followed by its text
	way     *completion // that tab is on
	chord   bool        // ctrl+x was pressed
	problem string
}

// NewCompose makes an empty one.
func NewCompose(title string) *Compose {
	m := textarea.New()
	m.Prompt, m.ShowLineNumbers, m.MaxHeight, m.MaxWidth = "", false, 0, 0
	m.SetStyles(textarea.Styles{
		Focused: textarea.StyleState{Base: screen.Look(screen.Input), Selection: screen.Look(screen.Selected)},
		Cursor:  textarea.CursorStyle{Color: screen.LookColor(screen.Input)}, // one that does not blink
	})
	m.KeyMap.Paste.SetEnabled(false) // the clipboard would be that of the engine's machine
	m.KeyMap.CopySelection.SetEnabled(false)
	m.KeyMap.InsertNewline.SetKeys("alt+enter", "shift+enter", "ctrl+j")
	m.Focus()
	return &Compose{Title: title, text: m}
}

// heldTab stands for a tab within the toolkit, which makes spaces of them. As
// heldReplacement it can't come from outside.
const heldTab = "\ue009"

// Value is the text so far.
func (p *Compose) Value() string { return strings.NewReplacer(p.folds...).Replace(p.shown()) }

// shown is the text with its folds.
func (p *Compose) shown() string { return strings.ReplaceAll(release(p.text.Value()), heldTab, "\t") }

// SetValue puts another text in its place, and the cursor at its end.
func (p *Compose) SetValue(s string) {
	p.folds = nil
	p.text.SetValue("")
	p.insert(s)
}

// insert types s at the cursor.
func (p *Compose) insert(s string) {
	lines := linesOf(s, "\t")
	text := strings.Join(core.Map(lines, func(l []rune) string { return string(l) }), "\n")
	if p.text.LineCount()+len(lines) > unfolded && len(lines) > 1 {
		fold := fmt.Sprintf("[text %d: %d lines]", len(p.folds)/2+1, len(lines))
		p.folds, text = append(p.folds, fold, text), fold
	}
	p.problem = ""
	p.text, _ = p.text.Update(tea.PasteMsg{Content: strings.ReplaceAll(hold(text), "\t", heldTab)})
}

// Update answers Submit with the text, Edit when it is to be edited elsewhere,
// or Close.
func (p *Compose) Update(msg tea.Msg) Action {
	if paste, ok := msg.(tea.PasteMsg); ok {
		p.way = nil
		p.insert(paste.Content)
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
			p.insert("\t")
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
	case key == "enter":
		if strings.TrimSpace(p.Value()) == "" {
			p.problem = "this can't be empty"
			return Action{}
		}
		return Action{Kind: Submit, Text: p.Value()}
	case k.Text != "":
		p.insert(k.Text)
	default:
		p.problem = ""
		p.text, _ = p.text.Update(k)
	}
	return Action{}
}

// Draw draws it, as tall as its text needs and the canvas allows.
func (p *Compose) Draw(c *screen.Canvas) {
	w, rows := min(max(70, c.W()*2/3), c.W()), 0
	for line := range strings.SplitSeq(p.shown(), "\n") {
		if rows += 1 + term.Width(line)/max(w-4, 1); rows > c.H() {
			break
		}
	}
	in := box(c, w, min(max(rows, 3)+3, c.H()-2), p.Title)
	if in.H < 2 {
		return
	}
	if p.text.Width() != in.W || p.text.Height() != in.H-1 {
		p.text.SetWidth(in.W)
		p.text.SetHeight(in.H - 1)
		p.text, _ = p.text.Update(nil) // which brings the cursor into sight
	}
	c.Widget(screen.Rect{X: in.X, Y: in.Y, W: in.W, H: in.H - 1}, screen.Input, strings.ReplaceAll(p.text.View(), heldTab, " "))
	hint, role := "enter: send   ctrl+j: new line   ctrl+g: $EDITOR   esc: cancel", screen.Dim
	if p.problem != "" {
		hint, role = p.problem, screen.Bad
	}
	last := screen.Rect{X: in.X, Y: in.Y + in.H - 1, W: in.W, H: 1}
	if p.problem != "" || !p.offering(c, last) {
		c.TextIn(last.X, last.Y, last.W, role, hint)
	}
}

// put replaces the cursor's line from a column to the cursor.
func (p *Compose) put(from int, text string) {
	tail := string(p.line()[p.text.Column():])
	p.text.SetCursorColumn(from)
	p.text, _ = p.text.Update(tea.KeyPressMsg{Code: 'k', Mod: tea.ModCtrl})
	p.insert(text + tail)
	p.text.SetCursorColumn(p.text.Column() - utf8.RuneCountInString(tail))
}

// line is the cursor's line.
func (p *Compose) line() []rune {
	return []rune(strings.Split(p.shown(), "\n")[p.text.Line()])
}
