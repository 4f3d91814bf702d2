package core

import (
	"strings"
	"unicode/utf8"
)

// Cut shortens text from outside to at most n bytes of valid UTF-8, without
// splitting a character.
func Cut(s string, n int) string {
	if len(s) > n {
		for n > 0 && s[n]&0xC0 == 0x80 {
			n--
		}
		s = s[:n]
	}
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "?") // never longer than what it replaces
}
