package policy

import (
	"strings"
	"unicode"
)

// sanitised is text without escape sequences, controls and what turns or
// hides text; lines stay.
func sanitised(text []byte) string {
	var out strings.Builder
	for _, r := range strings.ToValidUTF8(string(text), "\uFFFD") {
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
			out.WriteRune('\uFFFD')
		default:
			out.WriteRune(r)
		}
	}
	return strings.TrimSpace(out.String())
}

// lastLine is the end of what a program said, for the reason of a fault.
func lastLine(said string) string {
	if i := strings.LastIndexByte(said, '\n'); i >= 0 {
		said = said[i+1:]
	}
	return said
}
