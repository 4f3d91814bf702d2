package core

import (
	"strings"
	"unicode"
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

// ClipTo is text from outside in at most n bytes of valid UTF-8; "…" says that
// something was cut off.
func ClipTo(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return Cut(s, n)
	}
	return Cut(s, max(n-len(mark), 0)) + mark
}

// OneLine is ClipTo without line breaks and what can't be shown: each run of them
// is a space.
func OneLine(s string, n int) string {
	words := strings.FieldsFunc(Cut(s, 4*n), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	return ClipTo(strings.Join(words, " "), n)
}

// Printable says that each character of s can be shown.
func Printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
