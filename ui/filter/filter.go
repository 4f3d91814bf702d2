// Package filter is the language of the cockpit's `/` line. It is compiled
// once and then matched against the cells of rows without allocating.
//
// A filter is words; a row passes when every word does:
//
//	text        some cell contains text
//	!text       no cell does
//	~text       the letters of text occur in some cell, in this order
//	col:text    the cell of that column contains text
//	"two words" spaces belong to the text
//
// The signs combine, as in !status:~fld. Upper and lower case are the same.
// A word whose part before the colon names no column is plain text, so
// 12:30 finds a time.
package filter

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Filter is a compiled filter. The zero value and nil let every row pass.
type Filter struct {
	words []word
}

type word struct {
	text   string // lower case
	col    int    // -1: any cell
	negate bool
	fuzzy  bool
}

// Parse compiles text for rows with these columns. It never fails: what has
// no meaning is text. A lone sign or an unfinished col: says nothing yet and
// lets everything pass, so a filter can be applied while it is typed.
func Parse(text string, columns []string) *Filter {
	f := &Filter{}
	for _, raw := range split(text) {
		w := word{col: -1}
		if rest, ok := strings.CutPrefix(raw.text, "!"); ok && raw.sign {
			raw.text, w.negate = rest, true
		}
		if raw.sign {
			if name, value, ok := strings.Cut(raw.text, ":"); ok {
				if i := column(columns, name); i >= 0 {
					w.col, raw.text = i, value
				}
			}
			if rest, ok := strings.CutPrefix(raw.text, "~"); ok {
				raw.text, w.fuzzy = rest, true
			}
		}
		if w.text = strings.ToLower(raw.text); w.text != "" {
			f.words = append(f.words, w)
		}
	}
	return f
}

// column finds a column by its title: the whole of it, or its only beginning.
func column(columns []string, name string) int {
	found := -1
	for i, c := range columns {
		if strings.EqualFold(c, name) {
			return i
		}
		if name != "" && len(name) <= len(c) && strings.EqualFold(c[:len(name)], name) {
			if found >= 0 {
				found = -2
				continue
			}
			if found == -1 {
				found = i
			}
		}
	}
	return found
}

type token struct {
	text string
	sign bool // its beginning was not quoted, so signs count
}

// split cuts text at spaces outside of double quotes; a quote without an end
// reaches to the end.
func split(text string) []token {
	var out []token
	var b strings.Builder
	quoted, open, sign := false, false, true
	flush := func() {
		if open {
			out = append(out, token{b.String(), sign})
		}
		b.Reset()
		open, sign = false, true
	}
	for _, r := range text {
		switch {
		case r == '"':
			if !open {
				sign = false
			}
			quoted, open = !quoted, true
		case unicode.IsSpace(r) && !quoted:
			flush()
		default:
			b.WriteRune(r)
			open = true
		}
	}
	flush()
	return out
}

// Empty tells whether every row passes.
func (f *Filter) Empty() bool { return f == nil || len(f.words) == 0 }

// Match tells whether a row passes; cells are in the order of the columns.
func (f *Filter) Match(cells []string) bool {
	if f == nil {
		return true
	}
	for i := range f.words {
		if f.words[i].match(cells) == f.words[i].negate {
			return false
		}
	}
	return true
}

func (w *word) match(cells []string) bool {
	if w.col >= 0 {
		return w.col < len(cells) && w.in(cells[w.col])
	}
	return slices.ContainsFunc(cells, w.in)
}

func (w *word) in(s string) bool {
	if w.fuzzy {
		return fuzzy(s, w.text)
	}
	_, _, ok := Index(s, w.text)
	return ok
}

// Index finds lower (which must be lower case) in s whatever the case of s is:
// s[start:end] is the part found. It allocates nothing.
func Index(s, lower string) (start, end int, ok bool) {
	if lower == "" {
		return 0, 0, false
	}
	first, _ := utf8.DecodeRuneInString(lower)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if unicode.ToLower(r) == first {
			if n, ok := prefix(s[i:], lower); ok {
				return i, i + n, true
			}
		}
		i += size
	}
	return 0, 0, false
}

// prefix tells whether s begins with lower, and how many bytes of s that is.
func prefix(s, lower string) (int, bool) {
	at := 0
	for _, want := range lower {
		r, size := utf8.DecodeRuneInString(s[at:])
		if size == 0 || unicode.ToLower(r) != want {
			return 0, false
		}
		at += size
	}
	return at, true
}

func fuzzy(s, lower string) bool {
	want, size := utf8.DecodeRuneInString(lower)
	for _, r := range s {
		if unicode.ToLower(r) == want {
			lower = lower[size:]
			if lower == "" {
				return true
			}
			want, size = utf8.DecodeRuneInString(lower)
		}
	}
	return lower == ""
}
