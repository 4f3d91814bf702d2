package document

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Lines tells where the fields of an object stand.
type Lines map[string]int

// Pair is a field of a mapping.
type Pair struct {
	Key string
	Value
}

// Object reads a mapping; every key must be known and the needed ones there.
func (r *Reader) Object(v Value, fields map[string]func(Value), needed ...string) Lines {
	pairs, ok := r.Pairs(v)
	if !ok {
		return nil
	}
	given := Lines{}
	for _, p := range pairs {
		read, known := fields[p.Key]
		if !known {
			allowed := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
			r.Add(Problem{Line: p.Line(), Field: p.path, Message: "unknown field; allowed: " + allowed, Value: Clip(p.Key), Allowed: allowed})
			continue
		}
		given[p.Key] = p.line
		read(p.Value)
	}
	for _, name := range needed {
		if given[name] == 0 {
			r.Fail(v.Child(name), "missing")
		}
	}
	return given
}

// Pairs are the fields of a mapping, in the order of the file.
func (r *Reader) Pairs(v Value) ([]Pair, bool) {
	if v.Kind() != Mapping {
		r.Want(v, Mapping)
		return nil, false
	}
	all := make([]Pair, 0, len(v.node.pairs))
	seen := make(map[string]bool, len(v.node.pairs))
	for _, m := range v.node.pairs {
		switch {
		case !m.plain:
			r.Fail(Value{path: v.path, line: m.line}, "want plain names as keys, got %s", Clip(m.key))
		case seen[m.key]:
			r.At(max(1, m.line), v.member(m).path, "given twice")
		default:
			all = append(all, Pair{m.key, v.member(m)})
		}
		seen[m.key] = true
	}
	return all, true
}

// Want reports that a value is not of the wanted kind.
func (r *Reader) Want(v Value, want Kind) { r.Fail(v, "want %s, got %s", want, v.Kind()) }

// Each reads a list; nothing is an empty one.
func Each[T any](r *Reader, v Value, read func(Value) T) []T {
	if v.Empty() {
		return nil
	}
	if v.Kind() != List {
		r.Want(v, List)
		return nil
	}
	all := make([]T, len(v.node.items))
	for i := range v.node.items {
		all[i] = read(v.item(i))
	}
	return all
}

// Text reads a scalar as the text that stands in the file.
func (r *Reader) Text(v Value) string {
	switch v.Kind() {
	case Text, Number, Bool:
		return v.node.text
	}
	r.Want(v, Text)
	return ""
}

// Word is text that is not empty and of one line.
func (r *Reader) Word(v Value) string {
	before := len(r.problems)
	s := r.Text(v)
	if len(r.problems) == before && (strings.TrimSpace(s) == "" || strings.ContainsAny(s, "\n\r")) {
		r.Fail(v, "%q is not allowed; want one line of text", Clip(s))
	}
	return s
}

// Texts reads a mapping of texts.
func (r *Reader) Texts(v Value) map[string]string {
	if v.Empty() {
		return nil
	}
	pairs, _ := r.Pairs(v)
	all := make(map[string]string, len(pairs))
	for _, p := range pairs {
		all[p.Key] = r.Text(p.Value)
	}
	return all
}

// Bool reads true or false.
func (r *Reader) Bool(v Value) bool {
	if v.Kind() != Bool {
		r.Want(v, Bool)
		return false
	}
	return strings.EqualFold(v.node.text, "true")
}

// Integer reads a whole number from 0 to 2^53.
func (r *Reader) Integer(v Value) int64 {
	n := r.Number(v)
	if n != math.Trunc(n) || n > 1<<53 {
		r.Fail(v, "want a whole number")
		return 0
	}
	return int64(n)
}

// Number reads a number of 0 or more.
func (r *Reader) Number(v Value) float64 {
	if v.Kind() != Number {
		r.Want(v, Number)
		return 0
	}
	n := v.node.num
	if n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
		r.Fail(v, "want a number of 0 or more")
		return 0
	}
	return n
}

// Range reads a whole number from low to high.
func (r *Reader) Range(v Value, low, high int) int {
	if v.Kind() != Number {
		r.Want(v, Number)
		return low
	}
	n := v.node.num
	if n != math.Trunc(n) || !(n >= float64(low) && n <= float64(high)) {
		r.Bad(v, number(v.node.text), fmt.Sprintf("a whole number, %d-%d", low, high))
		return low
	}
	return int(n)
}

// Duration reads a duration like 15m; "" is 0.
func (r *Reader) Duration(v Value) time.Duration {
	s := r.Text(v)
	d, err := time.ParseDuration(s)
	if s != "" && (err != nil || d < 0) {
		r.Fail(v, "%q is not allowed; want a duration like 30s, 15m or 2h", Clip(s))
		return 0
	}
	return d
}

// String reads what must be written as text: 1.0 and true are none.
func (r *Reader) String(v Value) (string, bool) {
	if v.Kind() != Text {
		r.Want(v, Text)
		return "", false
	}
	if !utf8.ValidString(v.node.text) {
		r.Fail(v, "want text in UTF-8")
		return "", false
	}
	return v.node.text, true
}

// Fill reads a mapping into the members of a struct that have the tag file, by the names
// that they have in JSON. The tag says how one is read where its type does not: "word" of
// one line or "prose" without the space around it, "1-10" for a whole number of these, and
// "object" for a mapping as JSON. A tag that ends in "needed" is of a member that must be
// there. Of a list it is that of the items; structs are filled by their own tags.
func (r *Reader) Fill(v Value, into any) Lines {
	fields, needed := map[string]func(Value){}, []string(nil)
	at := reflect.ValueOf(into).Elem()
	for _, f := range reflect.VisibleFields(at.Type()) {
		tag, filled := f.Tag.Lookup("file")
		if !filled {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		how, must := strings.CutSuffix(tag, "needed")
		if must {
			needed = append(needed, name)
		}
		fields[name] = func(v Value) { r.fill(v, at.FieldByIndex(f.Index), strings.TrimSpace(how)) }
	}
	return r.Object(v, fields, needed...)
}

// fill reads one member.
func (r *Reader) fill(v Value, to reflect.Value, how string) {
	switch {
	case to.Kind() == reflect.Slice && how != "object":
		items := Each(r, v, func(item Value) Value { return item })
		if items == nil {
			return
		}
		to.Set(reflect.MakeSlice(to.Type(), len(items), len(items)))
		for i, item := range items {
			r.fill(item, to.Index(i), how)
		}
	case how == "object" && v.Kind() != Mapping:
		r.Want(v, Mapping)
	case how == "object":
		to.SetBytes(r.Raw(v))
	case how == "word":
		to.SetString(r.Word(v))
	case how == "prose":
		to.SetString(strings.TrimSpace(r.Text(v)))
	case to.Kind() == reflect.String:
		to.SetString(r.Text(v))
	case to.Kind() == reflect.Float64:
		to.SetFloat(r.Number(v))
	case to.Kind() == reflect.Struct:
		r.Fill(v, to.Addr().Interface())
	default:
		var low, high int
		_, _ = fmt.Sscanf(how, "%d-%d", &low, &high)
		to.SetInt(int64(r.Range(v, low, high)))
	}
}
