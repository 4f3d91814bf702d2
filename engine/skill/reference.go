package skill

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"swarmdeck/engine/core"
)

// reference is one ${root.field[0]} of a text: root is a step's id, "params"
// or, in a prompt, a parameter; what follows leads into its value.
type reference struct {
	text string // as written, with ${ and }
	root string
	path []hop
}

// hop is one step into a value: a member of an object or an item of a list.
type hop struct {
	key   string // "" for an item
	index int
}

func (h hop) String() string {
	if h.key == "" {
		return "[" + strconv.Itoa(h.index) + "]"
	}
	return "." + h.key
}

// piece is a part of a text: literal or a reference.
type piece struct {
	literal string
	ref     *reference
}

// Bounds of references; more is no mapping but a mistake.
const (
	maxHops      = 32
	maxReference = 500 // bytes between ${ and }
)

// parseText finds the references of a text. "$${" stands for a literal "${";
// any other "$" is itself.
func parseText(s string) ([]piece, error) {
	var list []piece
	literal := func(s string) {
		if s == "" {
			return
		}
		if n := len(list); n > 0 && list[n-1].ref == nil {
			list[n-1].literal += s
			return
		}
		list = append(list, piece{literal: s})
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
			return nil, core.Errorf(core.InvalidInput, "%s: the reference has no closing brace; a literal ${ is written $${", shorten(s[at:], 60))
		}
		ref, err := parseReference(s[at : at+end+1])
		if err != nil {
			return nil, err
		}
		list = append(list, piece{ref: ref})
		s = s[at+end+1:]
	}
}

// parseReference reads "${root.key[0]…}".
func parseReference(text string) (*reference, error) {
	wrong := func(why string) error {
		return core.Errorf(core.InvalidInput, "%s: %s; write ${step.field}, ${step.list[0]} or ${params.name}", shorten(text, 120), why)
	}
	inner := text[2 : len(text)-1]
	if len(inner) > maxReference {
		return nil, wrong("the reference is longer than " + strconv.Itoa(maxReference) + " bytes")
	}
	r := &reference{text: text}
	r.root, inner = word(inner)
	if r.root == "" {
		return nil, wrong("it names nothing")
	}
	for inner != "" {
		if len(r.path) == maxHops {
			return nil, wrong("it leads deeper than " + strconv.Itoa(maxHops) + " fields")
		}
		var h hop
		switch inner[0] {
		case '.':
			if h.key, inner = word(inner[1:]); h.key == "" {
				return nil, wrong("a field's name is missing after a dot")
			}
		case '[':
			digits, rest, closed := strings.Cut(inner[1:], "]")
			n, err := strconv.ParseUint(digits, 10, 31)
			if !closed || err != nil {
				return nil, wrong("an index is a number in brackets, counted from 0")
			}
			h.index, inner = int(n), rest
		default:
			return nil, wrong(fmt.Sprintf("%q is not expected", firstRune(inner)))
		}
		r.path = append(r.path, h)
	}
	return r, nil
}

// word cuts a name off the front: letters, digits, "_" and "-".
func word(s string) (name, rest string) {
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

// find follows a reference into the values of a scope, which are valid JSON.
// Its error says how far it came.
func (r *reference) find(scope map[string]core.Raw) (core.Raw, error) {
	missing := func(format string, args ...any) error {
		return core.Errorf(core.InvalidInput, "%s: %s", r.text, fmt.Sprintf(format, args...))
	}
	value, ok := scope[r.root]
	if !ok || len(value) == 0 {
		return nil, missing("%s has no value", r.root)
	}
	at := r.root
	for _, h := range r.path {
		switch kind := value.Kind(); {
		case h.key != "" && kind != '{':
			return nil, missing("%s is %s and has no fields", at, kindName(kind))
		case h.key == "" && kind != '[':
			return nil, missing("%s is %s and no list", at, kindName(kind))
		case h.key != "":
			member, names := memberOf(value, h.key)
			if member == nil && len(names) == 0 {
				return nil, missing("%s has no field %s: it is empty", at, h.key)
			}
			if member == nil {
				return nil, missing("%s has no field %s; it has %s", at, h.key, strings.Join(names, ", "))
			}
			value = member
		default:
			item, n := itemOf(value, h.index)
			if item == nil {
				return nil, missing("%s has %d items, counted from 0", at, n)
			}
			value = item
		}
		at += h.String()
	}
	return value, nil
}

// someNames are at most 8 of them, for a message.
func someNames(names []string) []string {
	if len(names) > 8 {
		names = append(slices.Clone(names[:8]), "…")
	}
	return names
}
