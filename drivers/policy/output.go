package policy

import (
	"strings"
	"unicode"
)

// bounded keeps the first bytes that are written to it.
type bounded struct {
	kept []byte
	most int
	over error // of a write of more; nil just drops the rest
}

// Write implements io.Writer. Without over it takes everything: a program that
// says too much is not to hang on it.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - len(b.kept)
	b.kept = append(b.kept, p[:min(room, len(p))]...)
	if len(p) > room && b.over != nil {
		return room, b.over
	}
	return len(p), nil
}

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
