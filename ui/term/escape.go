package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape returns the length of the escape sequence at the start of s, which
// begins with ESC or with a C1 control in UTF-8. A sequence that is not
// finished loses only its introducer: what follows stays visible, so nobody
// can hide text behind a string that never ends.
func escape(s string) int {
	intro, kind := 1, byte(0)
	if s[0] == 0x1b {
		if len(s) < 2 {
			return 1
		}
		intro, kind = 2, s[1]
	} else { // U+0080..U+009F is C2 80..C2 9F and stands for ESC 0x40..0x5F
		intro, kind = 2, s[1]-0x40
	}
	switch kind {
	case '[':
		return control7(s, intro)
	case ']', 'P', 'X', '^', '_':
		return stringEnd(s, intro)
	}
	if s[0] != 0x1b {
		return intro // a C1 control without arguments
	}
	// ESC, intermediates, one final byte.
	i := 1
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
		i++
	}
	if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
		return i + 1
	}
	return 1
}

// control7 is the end of a CSI sequence whose parameters start at i.
func control7(s string, i int) int {
	start := i
	for i < len(s) && s[i] >= 0x30 && s[i] <= 0x3f {
		i++
	}
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
		i++
	}
	if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
		return i + 1
	}
	return start
}

// stringEnd is the end of an OSC, DCS, SOS, PM or APC string: after BEL, ESC
// backslash or U+009C. Any other control breaks the string off, as terminals
// do, so that looking for ends stays linear in the length of s.
func stringEnd(s string, start int) int {
	const maxString = 64 << 10
	for i := start; i < len(s) && i < start+maxString; i++ {
		switch b := s[i]; {
		case b == '\a':
			return i + 1
		case b == 0x1b && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case b == 0xc2 && i+1 < len(s) && s[i+1] == 0x9c:
			return i + 2
		case b < 0x20, b == 0xc2 && i+1 < len(s) && s[i+1] >= 0x80 && s[i+1] < 0xa0:
			return start
		}
	}
	return start
}

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
