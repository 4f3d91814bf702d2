package mapping

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
)

// Reference is one ${root.field[0]} of a text: the root is a name of the scope,
// what follows leads into its value.
type Reference struct {
	Text string // as written, with ${ and }
	Root string
	Path []Hop
}

// Hop is one step into a value: a member of an object or an item of a list.
type Hop struct {
	Key   string // "" for an item
	Index int
}

func (h Hop) String() string {
	if h.Key == "" {
		return "[" + strconv.Itoa(h.Index) + "]"
	}
	return "." + h.Key
}

// Piece is a part of a text: literal or a reference.
type Piece struct {
	Literal string
	Ref     *Reference
}

// References reports whether a text refers to anything.
func References(pieces []Piece) bool {
	return slices.ContainsFunc(pieces, func(p Piece) bool { return p.Ref != nil })
}

// Bounds of references; more is no mapping but a mistake.
const (
	maxHops      = 32
	maxReference = 500 // bytes between ${ and }
)

// Parse finds the references of a text. "$${" stands for a literal "${";
// any other "$" is itself.
func Parse(s string) ([]Piece, error) {
	var list []Piece
	literal := func(s string) {
		if s == "" {
			return
		}
		if n := len(list); n > 0 && list[n-1].Ref == nil {
			list[n-1].Literal += s
			return
		}
		list = append(list, Piece{Literal: s})
	}
	for {
		at := strings.Index(s, "${")
		if at < 0 {
			literal(s)
			return list, nil
		}
		if at > 0 && s[at-1] == '$' {
			literal(s[:at-1] + "${")
			s = s[at+2:]
			continue
		}
		literal(s[:at])
		end := strings.IndexByte(s[at:], '}')
		if end < 0 {
			return nil, core.Errorf(core.InvalidInput, "%s: the reference has no closing brace; a literal ${ is written $${", document.Clip(s[at:]))
		}
		ref, err := parseReference(s[at : at+end+1])
		if err != nil {
			return nil, err
		}
		list = append(list, Piece{Ref: ref})
		s = s[at+end+1:]
	}
}

// parseReference reads "${root.key[0]…}".
func parseReference(text string) (*Reference, error) {
	wrong := func(why string) error {
		return core.Errorf(core.InvalidInput, "%s: %s; write ${step.field} or ${step.list[0]}", document.Clip(text), why)
	}
	inner := text[2 : len(text)-1]
	if len(inner) > maxReference {
		return nil, wrong("the reference is longer than " + strconv.Itoa(maxReference) + " bytes")
	}
	r := &Reference{Text: text}
	r.Root, inner = Word(inner)
	if r.Root == "" {
		return nil, wrong("it names nothing")
	}
	for inner != "" {
		if len(r.Path) == maxHops {
			return nil, wrong("it leads deeper than " + strconv.Itoa(maxHops) + " fields")
		}
		var h Hop
		switch inner[0] {
		case '.':
			if h.Key, inner = Word(inner[1:]); h.Key == "" {
				return nil, wrong("a field's name is missing after a dot")
			}
		case '[':
			digits, rest, closed := strings.Cut(inner[1:], "]")
			n, err := strconv.ParseUint(digits, 10, 31)
			if !closed || err != nil {
				return nil, wrong("an index is a number in brackets, counted from 0")
			}
			h.Index, inner = int(n), rest
		default:
			return nil, wrong(fmt.Sprintf("%q is not expected", firstRune(inner)))
		}
		r.Path = append(r.Path, h)
	}
	return r, nil
}

// Word cuts a name off the front: letters, digits, "_" and "-".
func Word(s string) (name, rest string) {
	end := strings.IndexFunc(s, func(r rune) bool {
		return !(unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-')
	})
	if end < 0 {
		return s, ""
	}
	return s[:end], s[end:]
}

func firstRune(s string) string {
	for _, r := range s {
		return string(r)
	}
	return ""
}

// Find follows a reference into the values of a scope, which are valid JSON.
// Its error says how far it came.
func (r *Reference) Find(scope map[string]core.Raw) (core.Raw, error) {
	missing := func(format string, args ...any) error {
		return core.Errorf(core.InvalidInput, "%s: %s", r.Text, fmt.Sprintf(format, args...))
	}
	value, ok := scope[r.Root]
	if !ok || len(value) == 0 {
		return nil, missing("%s has no value", r.Root)
	}
	at := r.Root
	for _, h := range r.Path {
		switch kind := value.Kind(); {
		case h.Key != "" && kind != '{':
			return nil, missing("%s is %s and has no fields", at, kindName(kind))
		case h.Key == "" && kind != '[':
			return nil, missing("%s is %s and no list", at, kindName(kind))
		case h.Key != "":
			member, names := Member(value, h.Key)
			if member == nil && len(names) == 0 {
				return nil, missing("%s has no field %s: it is empty", at, h.Key)
			}
			if member == nil {
				return nil, missing("%s has no field %s; it has %s", at, h.Key, strings.Join(names, ", "))
			}
			value = member
		default:
			item, n := itemOf(value, h.Index)
			if item == nil {
				return nil, missing("%s has %d items, counted from 0", at, n)
			}
			value = item
		}
		at += h.String()
	}
	return value, nil
}

// SomeNames are at most 8 of them, for a message.
func SomeNames(names []string) []string {
	if len(names) > 8 {
		names = append(slices.Clone(names[:8]), "…")
	}
	return names
}
