package overlay

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
)

// Form asks for the members of a JSON object, field by field: the parameters
// of a skill, the payload of a message. Submit gives the object as text, with
// the fields that were filled in, in their order; an empty field is left out.
//
//	form := overlay.NewForm("invoke detect@1.2.0", []overlay.Field{
//		{Name: "image", Type: overlay.StringField, Required: true, Description: "path of the picture"},
//		{Name: "mode", Type: overlay.EnumField, Enum: []core.Raw{core.Raw(`"fast"`), core.Raw(`"exact"`)}, Default: core.Raw(`"fast"`)},
//	})
//	form.Check = func(object core.Raw) error { // the rules that go beyond one field's type
//		_, err := detect.CheckParams(object)
//		return err
//	}
//
// A pane doesn't hold a form: it returns pane.Fill, and the root opens
// the form and runs the command line that comes of it. What is wrong stands below its field; Enter
// then goes to the first such field instead.
type Form struct {
	letters
	Title string
	// Check looks at an object whose fields are all of their type; Refuse says
	// how its error is shown. It may be nil.
	Check func(object core.Raw) error

	fields  []*entry
	at      int // the field that has the keys
	top     int // the first row in sight
	start   string
	problem string // of the form as a whole
	leaving bool   // esc was pressed once over changed fields
}

// NewForm opens a form on fields, their defaults entered.
func NewForm(title string, fields []Field) *Form {
	f := &Form{Title: title}
	for _, field := range fields {
		f.fields = append(f.fields, newEntry(field))
	}
	f.start = f.entered()
	return f
}

// entered is all that was entered, to see whether it changed.
func (f *Form) entered() string {
	var b strings.Builder
	for _, e := range f.fields {
		b.WriteString(e.text())
		b.WriteByte('\n')
	}
	return b.String()
}

// Update answers Submit with the object, on enter, or Close on esc, which asks
// once more when something was entered. Pasted text goes into the field at
// hand and does nothing else.
func (f *Form) Update(msg tea.Msg) Action {
	switch msg := msg.(type) {
	case tea.PasteMsg:
		f.leaving = false
		f.edit(func(e *entry) { e.paste(msg.Content) })
	case tea.KeyPressMsg:
		return f.key(msg)
	}
	return Action{}
}

func (f *Form) key(k tea.KeyPressMsg) Action {
	name := k.String()
	if name == "esc" || name == "ctrl+c" {
		if f.leaving || f.entered() == f.start {
			return Action{Kind: Close}
		}
		f.leaving = true
		return Action{}
	}
	f.leaving = false
	switch name {
	case "enter", "ctrl+x":
		if k.IsRepeat {
			return Action{}
		}
		return f.submit()
	case "tab":
		f.move(1, true)
	case "shift+tab":
		f.move(-1, true)
	case "down", "ctrl+n":
		if e := f.current(); e == nil || !e.within(1, k) {
			f.move(1, false)
		}
	case "up", "ctrl+p":
		if e := f.current(); e == nil || !e.within(-1, k) {
			f.move(-1, false)
		}
	default:
		f.edit(func(e *entry) { e.key(k) })
	}
	return Action{}
}

// move goes to another field; round from the last to the first.
func (f *Form) move(by int, round bool) {
	n := len(f.fields)
	switch to := f.at + by; {
	case n == 0:
	case round:
		f.at = (to + n) % n
	default:
		f.at = min(max(to, 0), n-1)
	}
}

// current is the field that has the keys, nil in a form without fields.
func (f *Form) current() *entry {
	if f.at >= len(f.fields) {
		return nil
	}
	return f.fields[f.at]
}

// edit lets the field at hand take a key or a paste.
func (f *Form) edit(take func(*entry)) {
	e := f.current()
	if e == nil {
		return
	}
	before := e.text()
	if take(e); e.text() != before {
		e.problem, f.problem = "", ""
	}
}
