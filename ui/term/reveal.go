package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reveal returns s as one printable line in which nothing is hidden: every
// character that Clean would drop or replace is spelled out, such as ⟨ESC⟩,
// ⟨U+202E⟩ or ⟨\xff⟩, and so are spaces that aren't U+0020. For text that a
// person is about to approve. The brackets themselves are spelled out where s
// holds them, so a spelling can't be forged.
func Reveal(s string) string {
	if ascii(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for len(s) > 0 {
		n := shown(s)
		if n > 0 {
			b.WriteString(s[:n])
			s = s[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		spell(&b, r, s[:size])
		s = s[size:]
	}
	return b.String()
}

// shown is the length of the first character of s with its marks when it may
// be shown as it is, else 0.
func shown(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError, r < 0x20, r == 0x7f, r == openSpelling, r == closeSpelling:
		return 0
	case r >= 0x80 && (kind(r) != plain || runeWidth(r) == 0):
		return 0
	}
	return marks(s, size)
}

const (
	openSpelling  = '⟨'
	closeSpelling = '⟩'
)

// controls are the names of controls that have one which people know.
var controls = map[rune]string{'\t': "TAB", '\n': "LF", '\r': "CR", 0x1b: "ESC", 0: "NUL", '\a': "BEL", '\b': "BS"}

func spell(b *strings.Builder, r rune, raw string) {
	name := controls[r]
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		name = fmt.Sprintf(`\x%02x`, raw[0])
	case name == "":
		name = fmt.Sprintf("U+%04X", r)
	}
	b.WriteRune(openSpelling)
	b.WriteString(name)
	b.WriteRune(closeSpelling)
}

// Suspicious tells whether s holds something Clean would not show: a control
// other than tab and line break, an escape sequence, a hidden or bidirectional
// character, invalid UTF-8.
func Suspicious(s string) bool {
	if ascii(s) {
		return false
	}
	for i, r := range s {
		switch {
		case r == '\t', r == '\n', r == '\r' && strings.HasPrefix(s[i:], "\r\n"):
		case r < 0x20, r == 0x7f:
			return true
		case r == utf8.RuneError:
			return true
		case r >= 0x80 && !unicode.Is(unicode.M, r) && kind(r) != plain:
			return true
		case r == 0x34F, unicode.Is(unicode.Variation_Selector, r):
			return true
		}
	}
	return false
}
