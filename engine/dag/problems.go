package dag

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"swarmdeck/engine/core"
)

// Bounds of what an event may hold. Payloads have none of their own: an event
// has MaxEvent bytes.
const (
	MaxEvent    = 4 << 20 // bytes of JSON
	maxID       = 512     // bytes of an id or name
	maxURI      = 4096    // bytes of an address or path
	maxRefs     = 4096    // references in one list
	maxNodes    = 256     // nodes that one event introduces
	maxEdges    = 1024    // explicit edges of one event
	maxProblems = 20      // mistakes that one error names
)

// problem is one mistake in an event.
type problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// problems gathers all mistakes of an event.
type problems struct {
	at   string // prefix of the fields: "nodes[0]."
	all  []problem
	more int
}

func (f *problems) add(field, format string, args ...any) {
	if len(f.all) == maxProblems {
		f.more++
		return
	}
	f.all = append(f.all, problem{strings.TrimSuffix(f.at+field, "."), fmt.Sprintf(format, args...)})
}

// within runs check with its fields under a prefix.
func (f *problems) within(prefix string, check func()) {
	was := f.at
	f.at += prefix + "."
	check()
	f.at = was
}

// err is one error that names every mistake; nil when there is none.
func (f *problems) err() error {
	if len(f.all) == 0 {
		return nil
	}
	lines := core.Map(f.all, func(p problem) string { return p.Field + ": " + p.Message })
	if f.more > 0 {
		lines = append(lines, fmt.Sprintf("%d more", f.more))
	}
	return core.Errorf(core.InvalidInput, "%s", strings.Join(lines, "; ")).With("field", f.all[0].Field).With("problems", f.all)
}

// name checks a required id or name.
func (f *problems) name(field, value string) { f.nameIf(true, field, value) }

// optional checks an id or name that may be absent.
func (f *problems) optional(field, value string) { f.nameIf(false, field, value) }

func (f *problems) nameIf(required bool, field, value string) {
	if required && value == "" {
		f.add(field, "missing")
	}
	f.text(field, value, maxID)
}

func (f *problems) text(field, value string, most int) {
	switch {
	case len(value) > most:
		f.add(field, "%d bytes are too many; allowed: %d", len(value), most)
	case strings.ContainsFunc(value, hidden) || !utf8.ValidString(value):
		f.add(field, "%q is not allowed; allowed: text without control or invisible characters", core.Clip(value))
	}
}

// hidden are the characters that an id can't have: it is printed and compared
// by people.
func hidden(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

func (f *problems) count(field string, n, most int) bool {
	if n > most {
		f.add(field, "%d are too many; allowed: %d", n, most)
	}
	return n <= most
}

func (f *problems) upto(field string, n, most int) {
	if n < 1 || n > most {
		f.add(field, "%d is not allowed; allowed: 1-%d", n, most)
	}
}

func (f *problems) atLeast0(field string, n int64) {
	if n < 0 {
		f.add(field, "%d is not allowed; allowed: 0 or more", n)
	}
}

// object checks a JSON object.
func (f *problems) object(required bool, field string, v core.Raw) {
	switch {
	case len(v) == 0 && required:
		f.add(field, "missing")
	case len(v) > 0 && v.Kind() != '{':
		f.add(field, "want an object")
	}
}

// member is one of a struct whose tag says what is checked of it, or that has members:
//
//	name, id       an id or name that must be there, or may be
//	uri, uri?      an address or path, likewise
//	event          an event's id
//	word, word?    a word of its enumeration, or of those that follow, likewise
//	object, dict   a JSON object, likewise
//	time           must be there
//	list           must be there, and may be empty; each says what is checked of its items
//	count          0 or more
//
// What a struct says of itself beside that is its method check. erase says that a member
// is content, which can be erased.
type member struct {
	index  int
	name   string // in JSON
	nested bool   // has members itself
	erase  bool   // is content, that can be erased
	list   bool   // must be there
	is     string // also of each item
	words  []string
}

var declared sync.Map // reflect.Type → []member

func membersOf(t reflect.Type) []member {
	if known, ok := declared.Load(t); ok {
		return known.([]member)
	}
	all := []member{}
	for i := range t.NumField() {
		field := t.Field(i)
		of := field.Type
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice && of != reflect.TypeFor[core.Raw]() {
			of = of.Elem()
		}
		m := member{index: i, list: field.Tag.Get("is") == "list", erase: field.Tag.Get("erase") == "true"}
		m.nested = of.Kind() == reflect.Struct && of != reflect.TypeFor[Time]()
		m.name, _, _ = strings.Cut(field.Tag.Get("json"), ",")
		is, given, explicit := strings.Cut(cmp.Or(field.Tag.Get("each"), field.Tag.Get("is")), " ")
		if m.is, m.words = is, enums()[of]; explicit {
			m.words = strings.Split(given, ", ")
		}
		if is != "" || m.nested || m.erase {
			all = append(all, m)
		}
	}
	declared.Store(t, all)
	return all
}

// members checks what a pointer to a struct points to.
func (f *problems) members(of any) {
	v := reflect.ValueOf(of).Elem()
	for _, m := range membersOf(v.Type()) {
		if m.is != "" || m.nested {
			f.member(&m, m.name, v.Field(m.index))
		}
	}
	if own, ok := of.(interface{ check(*problems) }); ok {
		own.check(f)
	}
}

func (f *problems) member(m *member, field string, v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *core.Raw:
		f.object(m.is == "object", field, *at)
		return
	case *Time:
		if at.IsZero() {
			f.add(field, "missing")
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			f.member(m, field, v.Elem())
		}
	case reflect.Struct:
		f.within(field, func() { f.members(v.Addr().Interface()) })
	case reflect.Slice:
		if m.list && v.IsNil() {
			f.add(field, "missing; a list, which may be empty")
		}
		if !f.count(field, v.Len(), maxRefs) {
			return
		}
		for i := range v.Len() {
			f.member(m, fmt.Sprintf("%s[%d]", field, i), v.Index(i))
		}
	case reflect.Int64:
		f.atLeast0(field, v.Int())
	default:
		f.word(m, field, v.String())
	}
}

// word checks a text.
func (f *problems) word(m *member, field, text string) {
	switch m.is {
	case "name", "id":
		f.nameIf(m.is == "name", field, text)
	case "uri", "uri?":
		if text == "" && m.is == "uri" {
			f.add(field, "missing")
		}
		f.text(field, text, maxURI)
	case "event":
		f.eventID(field, text)
	case "word":
		oneOf(f, field, text, m.words...)
	case "word?":
		maybe(f, field, text, m.words...)
	default:
		panic("dag: nothing is checked of " + field + ", whose tag is " + m.is)
	}
}

// oneOf checks a required word.
func oneOf[T ~string](f *problems, field string, value T, allowed ...T) {
	switch {
	case value == "":
		f.add(field, "missing; allowed: %s", words(allowed))
	case !slices.Contains(allowed, value):
		f.add(field, "%q is not allowed; allowed: %s", core.Clip(string(value)), words(allowed))
	}
}

// maybe checks a word that may be absent.
func maybe[T ~string](f *problems, field string, value T, allowed ...T) {
	if value != "" {
		oneOf(f, field, value, allowed...)
	}
}

func words[T ~string](all []T) string {
	texts := core.Map(all, func(w T) string { return string(w) })
	return strings.Join(texts, ", ")
}

// IsEventID reports whether s reads as an event's id.
func IsEventID(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

func (f *problems) eventID(field, id string) {
	switch {
	case id == "":
		f.add(field, "missing")
	case !IsEventID(id):
		f.add(field, "%q is not allowed; allowed: an event's id, 64 lower-case hex digits", core.Clip(id))
	}
}
