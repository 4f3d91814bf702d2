package plain

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func FuzzLinesAreHarmless(f *testing.F) {
	for _, s := range []string{"\x1b[2J", "\x1b]0;t\x07", "a\u202eb", "\u009b2J", "a\r\nb", "\xff", "e\u0301\u200d", "%s%n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		w := &writer{out: &out}
		w.line("agent %s; state: %s", text, text)
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Fatalf("one line became %d: %q", n, out.String())
		}
		w.block(text, text)
		w.block("args", text)
		for _, r := range out.String() {
			if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
				t.Fatalf("%U in %q", r, out.String())
			}
		}
		if !utf8.Valid(out.Bytes()) {
			t.Fatalf("no UTF-8: %q", out.String())
		}
	})
}
