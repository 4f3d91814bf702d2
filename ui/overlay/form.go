package overlay

import (
	"bytes"
	"slices"
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

// submit gives the object when nothing is wrong with it, and else says what is.
func (f *Form) submit() Action {
	f.problem = ""
	for _, e := range f.fields {
		e.problem = ""
	}
	object, ok := f.object()
	if ok && f.Check != nil {
		if err := f.Check(object); err != nil {
			f.Refuse(err)
			ok = false
		}
	}
	if !ok {
		return Action{}
	}
	return Action{Kind: Submit, Text: string(object)}
}

// object is what was entered as JSON; ok is false when something is wrong.
func (f *Form) object() (object core.Raw, ok bool) {
	var b bytes.Buffer
	b.WriteByte('{')
	ok = true
	for i := len(f.fields) - 1; i >= 0; i-- { // so that the first wrong one has the keys
		e := f.fields[i]
		if _, err := e.value(); err != nil {
			e.problem, f.at, ok = err.Error(), i, false
		}
	}
	if !ok {
		return nil, false
	}
	for _, e := range f.fields {
		v, _ := e.value()
		if v == nil {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(core.MustEncode(e.Name))
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	object = core.Raw(b.Bytes())
	err := core.CheckObject("form", object, core.MaxInput)
	if err == nil {
		err = object.Compact()
	}
	if err != nil {
		f.problem = err.Error()
		return nil, false
	}
	return object, true
}

// Refuse shows what is wrong with the object. Each mistake that the error's
// details list under "problems" ({"field","message"}), or its one "field",
// stands below the field it names, also as part of a path such as
// params.options.depth; the rest speaks of the form as a whole. Use it to open
// a form again whose object was refused later on.
func (f *Form) Refuse(err error) {
	e := core.AsError(err)
	type problem struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	}
	var found struct {
		problem
		Problems []problem `json:"problems"`
	}
	details, bad := core.Encode(e.Details)
	if bad == nil {
		bad = core.DecodeStored(details, &found)
	}
	if bad != nil || len(found.Problems) == 0 {
		found.Problems = []problem{{found.Field, strings.TrimPrefix(e.Message, found.Field+": ")}}
	}
	first := len(f.fields)
	for _, p := range found.Problems {
		first = min(first, f.refuse(p.Field, p.Message))
	}
	if first < len(f.fields) {
		f.at = first
	}
}

// refuse shows a problem at the field that a path names and returns that
// field's number, or how many fields there are.
func (f *Form) refuse(path, problem string) int {
	steps := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("./[]", r) })
	for n, step := range steps {
		i := slices.IndexFunc(f.fields, func(e *entry) bool { return e.Name == step })
		if i < 0 {
			continue
		}
		if rest := strings.Join(steps[n+1:], "."); rest != "" {
			problem = rest + ": " + problem
		}
		f.fields[i].problem = also(f.fields[i].problem, problem)
		return i
	}
	if path != "" {
		problem = path + ": " + problem
	}
	f.problem = also(f.problem, problem)
	return len(f.fields)
}

func also(had, more string) string {
	if had == "" {
		return more
	}
	return had + "; " + more
}
