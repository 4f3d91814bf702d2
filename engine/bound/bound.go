// Package bound says once what a member of a request may be: in its tag, in the
// words that an error and help show.
//
//	Priority *int          `json:"priority" allow:"0-100"`
//	Timeout  time.Duration `json:"timeout_s" allow:"none or 1s-24h"`
//	Reason   string        `json:"reason" allow:"1-500 printable characters"`
//	After    []string      `json:"after" allow:"at most 64 tasks"`
//	Effect   Effect        `json:"effect" allow:"read, write, hide"`
//
// A range is of a number, of a duration, which a whole number has in seconds, of what a
// list or a map holds, or of a text's length: in bytes, or in characters, which are
// UTF-8. "printable" allows no hidden character in it, "without control characters" none
// of those; "1-40 of a-z 0-9 -" says its characters, and "beginning with a letter or
// digit" the first. "none or" takes the zero value too; a nil pointer is always taken.
// The rest is for people.
package bound

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"swarmdeck/engine/core"
)

// Rule is what a tag allows.
type Rule struct {
	Name        string   // of the member, as JSON has it
	Text        string   // as the tag has it
	Least, Most float64  // of a duration in nanoseconds; a side that is open is infinite
	Words       []string // the values of a closed set; nil is none
	Span        bool     // Least and Most are durations
	none        bool     // the zero value is taken too
	of          string   // the characters of a text, as a-z 0-9 -; "" is any
}

// Parse reads a tag's words.
func Parse(text string) (Rule, error) {
	r := Rule{Text: text, Least: math.Inf(-1), Most: math.Inf(1)}
	words, none := strings.CutPrefix(text, "none or ")
	r.none = none
	first, rest, _ := strings.Cut(words, " ")
	first = strings.TrimSuffix(first, ",")
	var ok bool
	low, high, pair := strings.Cut(first, "-")
	if to, far := strings.CutPrefix(rest, "to "); far { // -1 to 3600
		low, pair = first, true
		high, rest, _ = strings.Cut(to, " ")
		high = strings.TrimSuffix(high, ",")
	}
	switch {
	case strings.HasPrefix(words, "at most "):
		first, rest, _ = strings.Cut(strings.TrimPrefix(words, "at most "), " ")
		r.Most, ok = amount(first)
	case strings.HasPrefix(rest, "or more"):
		r.Least, ok = amount(first)
	case pair && low != "":
		var is bool
		r.Least, ok = amount(low)
		r.Most, is = amount(high)
		ok = ok && is && r.Least <= r.Most
	default:
		if r.Words = strings.Split(words, ", "); len(r.Words) > 1 {
			return r, nil
		}
	}
	_, err := strconv.ParseFloat(strings.TrimSuffix(first, "-"+high), 64)
	r.Span = err != nil
	if of, is := strings.CutPrefix(rest, "of "); is && strings.Contains(of, "a-z") {
		r.of, _, _ = strings.Cut(of, ",")
	}
	if !ok {
		return r, fmt.Errorf("allow %q: not a range, such as 0-100, -1 to 1, 1s-24h, at most 64 tasks, 1 or more", text)
	}
	return r, nil
}

// amount reads a number or a duration.
func amount(text string) (float64, bool) {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n, true
	}
	d, err := time.ParseDuration(text)
	return float64(d), err == nil
}

// Check refuses the first member of a struct, or of what a pointer points to, that
// is not what its tag allows: invalid_input with the member's JSON name, its value
// and the tag's words. Members of embedded structs are its own.
func Check(record any) error { return CheckIn("", record) }

// CheckIn is Check with what stands before the names of the members: "options.".
func CheckIn(prefix string, record any) error {
	v := reflect.Indirect(reflect.ValueOf(record))
	all, err := members(v.Type(), nil)
	if err != nil {
		return err
	}
	return check(prefix, v, all)
}

// For is Check of records that many come of: their tags are read once, at its first use.
func For[T any]() func(*T) error {
	read := sync.OnceValues(func() ([]member, error) { return members(reflect.TypeFor[T](), nil) })
	return func(record *T) error {
		all, err := read()
		if err != nil {
			return err
		}
		return check("", reflect.ValueOf(record).Elem(), all)
	}
}

// Of is the rule of a record's member, both given as pointers; ok is false for a
// member without one.
func Of(record, member any) (rule Rule, ok bool) {
	v, at := reflect.ValueOf(record).Elem(), reflect.ValueOf(member).UnsafePointer()
	all, _ := members(v.Type(), nil)
	for _, m := range all {
		if v.FieldByIndex(m.index).Addr().UnsafePointer() == at {
			return m.rule, true
		}
	}
	return rule, false
}

// member is one that has a tag.
type member struct {
	index []int
	rule  Rule
}

func members(of reflect.Type, at []int) (all []member, err error) {
	for field := range of.Fields() {
		index := append(slices.Clone(at), field.Index...)
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			more, err := members(field.Type, index)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		} else if text, tagged := field.Tag.Lookup("allow"); tagged {
			r, err := Parse(text)
			if err != nil {
				return nil, err
			}
			r.Name = named(field)
			all = append(all, member{index, r})
		}
	}
	return all, nil
}

func check(prefix string, record reflect.Value, all []member) error {
	for _, m := range all {
		if v := record.FieldByIndex(m.index); !m.rule.takes(v) {
			return m.rule.refusal(prefix+m.rule.Name, v)
		}
	}
	return nil
}

// Given is the rule of a value that somebody gave: it takes no zero value for none.
func (r Rule) Given() Rule {
	r.none, r.Text = false, strings.TrimPrefix(r.Text, "none or ")
	return r
}

// Check refuses a value, or what a pointer points to, under the name of a field.
func (r Rule) Check(field string, value any) error {
	if v := reflect.ValueOf(value); !r.takes(v) {
		return r.refusal(field, v)
	}
	return nil
}

func (r Rule) takes(v reflect.Value) bool {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return true
		}
		v = v.Elem()
	}
	return r.none && v.IsZero() || r.holds(v)
}

func (r Rule) refusal(field string, v reflect.Value) error {
	v = reflect.Indirect(v)
	shown := v.Interface()
	switch {
	case v.Kind() == reflect.Slice, v.Kind() == reflect.Map:
		shown = v.Len()
	case r.Span && v.CanInt() && v.Type() != reflect.TypeFor[time.Duration]():
		shown = fmt.Sprint(shown, "s")
	}
	return core.Invalid(field, shown, r.Text)
}

// named is a member's name in JSON; without one, its Go name in lower case.
func named(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
		return name
	}
	var b strings.Builder
	for i, c := range f.Name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// holds says that a value is what the rule allows.
func (r Rule) holds(v reflect.Value) bool {
	n := math.NaN()
	switch v.Kind() {
	case reflect.String:
		text := v.String()
		if r.Words != nil {
			return slices.Contains(r.Words, text)
		}
		n = r.length(text)
	case reflect.Slice, reflect.Map:
		n = float64(v.Len())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n = float64(v.Int())
		if r.Span && v.Type() != reflect.TypeFor[time.Duration]() {
			n *= float64(time.Second)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n = float64(v.Uint())
	case reflect.Float32, reflect.Float64:
		n = v.Float()
	}
	return n >= r.Least && n <= r.Most && !math.IsInf(n, 0) // NaN is neither
}

// length is a text's in the rule's unit; NaN if it has a character that the rule
// does not allow.
func (r Rule) length(text string) float64 {
	characters := strings.Contains(r.Text, "characters")
	switch {
	case (characters || strings.Contains(r.Text, "UTF-8")) && !utf8.ValidString(text),
		strings.Contains(r.Text, "printable") && !core.Printable(text),
		strings.Contains(r.Text, "without control characters") && strings.ContainsFunc(text, unicode.IsControl),
		strings.Contains(r.Text, "beginning with a letter or digit") && text != "" && !alphanumeric(rune(text[0])),
		r.of != "" && strings.ContainsFunc(text, func(c rune) bool { return !r.has(c) }):
		return math.NaN()
	case characters && !strings.Contains(r.Text, "bytes"):
		return float64(utf8.RuneCountInString(text))
	}
	return float64(len(text))
}

func alphanumeric(c rune) bool {
	return c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c))
}

// has says that a character is one of the rule's.
func (r Rule) has(c rune) bool {
	for one := range strings.FieldsSeq(r.of) {
		if from, to, span := strings.Cut(one, "-"); span && from != "" && to != "" && c >= rune(from[0]) && c <= rune(to[0]) || string(c) == one {
			return true
		}
	}
	return false
}

// Bounds of a command: its words, and the bytes of one.
const (
	maxWords = 64
	maxWord  = 4096
)

// Command refuses words that are no command: a program and its arguments.
func Command(field string, words []string) error {
	for i, w := range words {
		if i == 0 && w == "" || len(w) > maxWord || !utf8.ValidString(w) || strings.ContainsRune(w, 0) {
			return core.Invalid(field, w, fmt.Sprintf("a program and its arguments, each of at most %d bytes of text", maxWord))
		}
	}
	if len(words) == 0 || len(words) > maxWords {
		return core.Invalid(field, len(words), fmt.Sprintf("a program and its arguments, at most %d words", maxWords))
	}
	return nil
}
