package core

import (
	"regexp"
	"strings"
	"sync"
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

// Join writes words as a line of a POSIX shell that is read as these words again.
func Join(words []string) string {
	return strings.Join(Map(words, Quote), " ")
}

// Quote makes one word of s, in single quotes where that is needed.
func Quote(s string) string {
	plain := func(r rune) bool {
		return r > 0x7f && r != 0xfffd || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
			strings.ContainsRune("-_./:=@,+%^~", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Pattern is a regular expression that is compiled at its first use. Patterns
// of the whole program compiled at its start would be most of what our own
// packages do there, and few commands use more than some of them. A mistake in
// expr panics at the first use.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
