package face

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Listed is a column of a cockpit's list, see List of Of.
type Listed struct {
	Column            // Text is nil where only the list knows it
	Min, Weight, Need int
	Key, Middle, ID   bool
}

// rest is the need of the first column that List does not lay out.
const rest = 20

// List are the columns of a cockpit's list.
func (f *Face) List() (all []Listed) {
	words := map[string]string{}
	for word := range strings.FieldsSeq(f.columns + " " + f.wide) {
		words[titleOf(word)] = word
	}
	for word := range strings.FieldsSeq(f.list) {
		if title, hidden := strings.CutPrefix(word, "-"); hidden {
			delete(words, title)
			continue
		}
		title, layout, _ := strings.Cut(word, ":")
		l := f.laid(layout)
		if l.Title = strings.ReplaceAll(title, "_", " "); words[title] != "" {
			l.Column = f.column(words[title])
		}
		delete(words, title)
		all = append(all, l)
	}
	for i, word := range strings.Fields(f.columns) {
		if title := titleOf(word); words[title] != "" {
			l := Listed{Column: f.column(word), Need: rest + i}
			if l.Min = max(4, len(title)); !l.Right && !l.Time {
				l.Min, l.Weight = max(l.Min, min(cmp.Or(l.Most, 12), 16)), 1+l.Most/20
			}
			l.Key = len(all) == 0 // of a list without a layout
			all = append(all, l)
		}
	}
	return all
}

func titleOf(word string) string {
	word, _, _ = strings.Cut(word, ",")
	title, _, _ := strings.Cut(word, ":")
	return title
}

// laid reads the layout of a column: 28*5/2kmri.
func (f *Face) laid(layout string) (l Listed) {
	digits := strings.TrimRight(layout, "kmri")
	for _, flag := range layout[len(digits):] {
		*map[rune]*bool{'k': &l.Key, 'm': &l.Middle, 'r': &l.Right, 'i': &l.ID}[flag] = true
	}
	digits, need, _ := strings.Cut(digits, "/")
	least, weight, _ := strings.Cut(digits, "*")
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil && text != "" {
			panic(fmt.Sprintf("face of %s: no column is laid out like %q", f.Type, layout))
		}
		return n
	}
	l.Min, l.Weight, l.Need = number(least), number(weight), number(need)
	return l
}

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
