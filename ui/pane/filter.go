package pane

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"swarmdeck/engine/core"
)

// Query is a parsed filter: terms separated by spaces, all of which must hold.
// A term is a substring, ~fuzzy, col:value, or any of these after a ! that
// negates it. Letters' case does not count. The zero Query matches everything.
type Query struct {
	Text  string
	terms []clause
}

type clause struct {
	not   bool
	fuzzy bool
	col   string // "" is the whole row
	text  string // in lower case
	raw   string
}

// ParseQuery reads a filter. cols are the names that may stand before a
// colon; any other word with a colon is a plain substring.
func ParseQuery(text string, cols ...string) Query {
	q := Query{Text: strings.TrimSpace(text)}
	for _, word := range strings.Fields(q.Text) {
		var t clause
		if rest, ok := strings.CutPrefix(word, "!"); ok {
			t.not, word = true, rest
		}
		if col, value, ok := strings.Cut(word, ":"); ok && slices.Contains(cols, strings.ToLower(col)) {
			t.col, word = strings.ToLower(col), value
		}
		if rest, ok := strings.CutPrefix(word, "~"); ok {
			t.fuzzy, word = true, rest
		}
		t.raw = word
		if t.text = strings.ToLower(word); t.text != "" {
			q.terms = append(q.terms, t)
		}
	}
	return q
}

// Empty reports whether the query matches everything.
func (q Query) Empty() bool { return len(q.terms) == 0 }

// Match tests one row. col returns the text of a column by name, and of the
// whole row for "".
func (q Query) Match(col func(name string) string) bool {
	for _, t := range q.terms {
		text := strings.ToLower(col(t.col))
		hit := strings.Contains(text, t.text)
		if t.fuzzy {
			hit = fuzzy(text, t.text)
		}
		if hit == t.not {
			return false
		}
	}
	return true
}

// fuzzy reports whether the runes of want stand in text in that order.
func fuzzy(text, want string) bool {
	need := []rune(want)
	for _, r := range text {
		if len(need) == 0 {
			return true
		}
		if unicode.ToLower(r) == need[0] {
			need = need[1:]
		}
	}
	return len(need) == 0
}

// Filter turns the query into one that the engine applies to a list of any
// length. The engine knows substrings and the columns in its Filter; negation
// and fuzzy terms are refused with an error that says so.
func (q Query) Filter() (core.Filter, error) {
	var f core.Filter
	var words []string
	for _, t := range q.terms {
		if t.not || t.fuzzy {
			return core.Filter{}, fmt.Errorf("this list is filtered in the engine: words and col:value only, not ! or ~")
		}
		switch t.col {
		case "status":
			f.Status = t.text
		case "agent":
			f.Agent = t.raw
		case "kind", "type":
			f.Kind = t.raw
		case "session":
			f.Session = t.raw
		case "trace":
			f.Trace = t.text
		case "task":
			f.Task = t.raw
		default:
			words = append(words, t.text)
		}
	}
	f.Match = strings.Join(words, " ")
	return f, nil
}
