package core

import "strings"

// Join writes words as a line of a POSIX shell that is read as these words again.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
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
