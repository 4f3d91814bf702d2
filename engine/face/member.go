package face

import (
	"fmt"
	"reflect"
	"strings"
)

// Member is one of what a tool may see of a record.
type Member struct {
	Name  string
	About string       // for a model; "" where the name says it
	Type  reflect.Type // of its value
	One   bool         // only where one record is shown: it may be large
	// Optional says that it is left out where it is empty.
	Optional bool
	// Value is that of a pointer to a record; nil where it is left out.
	Value func(v any) any
}

// Members are what a tool may see of a record, in order.
func (f *Face) Members() (all []Member) {
	for line := range strings.Lines(f.tool) {
		words, about, described := strings.Cut(strings.TrimSpace(line), ": ")
		for word := range strings.FieldsSeq(words) {
			if described {
				all = append(all, f.shown(word, about)...)
			} else {
				all = append(all, f.shown(word, "")...)
			}
		}
	}
	return all
}

// shown are the members that a word of Tool names.
func (f *Face) shown(word, about string) (all []Member) {
	word, one := strings.CutSuffix(word, ",one")
	if hidden, all := strings.CutPrefix(word, "*-"); all {
		return f.every(hidden)
	}
	name, path, other := strings.Cut(word, "=")
	if !other {
		path = name
	}
	m := Member{Name: name, About: about, One: one}
	if cell := f.cell(path); cell != nil {
		m.Type = reflect.TypeFor[string]()
		m.Value = func(v any) any { return cell(v, At{}) }
		return []Member{m}
	}
	read, t, _ := f.member(path)
	m.Type, m.Optional = t, f.optional(path)
	m.Value = func(v any) any {
		if at := read(v); at.IsValid() && !(m.Optional && at.IsZero()) {
			return at.Interface()
		}
		return nil
	}
	return []Member{m}
}

// every is each member that JSON has but one.
func (f *Face) every(hidden string) (all []Member) {
	for _, field := range reflect.VisibleFields(f.Type) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" && name != hidden {
			all = append(all, f.shown(name, "")...)
		}
	}
	if len(all) == 0 {
		panic(fmt.Sprintf("face of %s: no member is left", f.Type))
	}
	return all
}

// optional says that JSON leaves a member out where it is empty.
func (f *Face) optional(path string) bool {
	t := f.Type
	for name := range strings.SplitSeq(path, ".") {
		i := field(t, name)
		at := pointed(t).FieldByIndex(i)
		if _, options, _ := strings.Cut(at.Tag.Get("json"), ","); strings.Contains(options, "omit") {
			return true
		}
		t = at.Type
	}
	return false
}
