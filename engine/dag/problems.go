package dag

import (
	"fmt"
	"slices"
	"strings"
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

// object checks a required JSON object.
func (f *problems) object(field string, v core.Raw) {
	if len(v) == 0 {
		f.add(field, "missing")
		return
	}
	f.dict(field, v)
}

// dict checks a JSON object that may be absent.
func (f *problems) dict(field string, v core.Raw) {
	if len(v) > 0 && v.Kind() != '{' {
		f.add(field, "want an object")
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
