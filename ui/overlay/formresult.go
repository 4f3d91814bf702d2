package overlay

import (
	"bytes"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

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
