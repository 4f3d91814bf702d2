package plain

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"swarmdeck/expect"
)

func FuzzLinesAreHarmless(f *testing.F) {
	for _, s := range []string{"\x1b[2J", "\x1b]0;t\x07", "a\u202eb", "\u009b2J", "a\r\nb", "\xff", "e\u0301\u200d", "%s%n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		w := &writer{out: &out}
		w.line("agent %s; state: %s", text, text)
		n := strings.Count(out.String(), "\n")
		expect.Must(t, n == 1, "one line became %d: %q", n, out.String())
		w.block(text, text)
		w.block("args", text)
		for _, r := range out.String() {
			if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
				t.Fatalf("%U in %q", r, out.String())
			}
		}
		expect.Must(t, utf8.Valid(out.Bytes()), "no UTF-8: %q", out.String())
	})
}
