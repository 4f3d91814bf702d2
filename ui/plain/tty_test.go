package plain

import (
	"context"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestKeysMakeLines(t *testing.T) {
	for _, c := range []struct{ keys, want, shown string }{
		{"list\r", "list", "list\n"},
		{"a\r\nb\n", "a|b", "a\nb\n"},
		{"lisst\x7f\x7ft\r", "list", "lisst\b \b\b \bt\n"},
		{"ü\x08x\r", "x", "ü\b \bx\n"},
		{"gone\x15ok\r", "ok", "gone\b \b\b \b\b \b\b \bok\n"},
		{"\x1b[A\x1bOB\x1b[1;5Cup\r", "up", "up\n"},
		{"half\x03new\r", "new", "half^C\nnew\n"},
		{"x\x04\r\x04never\r", "x", "x\n"},
		{"\x00\x01a\tb\u202ec\xff\r", "ab\u202ec\xff", "abc\n"},
		{strings.Repeat("\x7f", 5) + "\r", "", "\n"},
		{"cut off", "", "cut off"},
	} {
		var shown strings.Builder
		lines, _, failed := readKeys(context.Background(), strings.NewReader(c.keys), func(s string) { shown.WriteString(s) })
		var got []string
		for l := range lines {
			got = append(got, l)
		}
		if strings.Join(got, "|") != c.want || shown.String() != c.shown || *failed != nil {
			t.Errorf("%q: %q, shown %q, %v", c.keys, got, shown.String(), *failed)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("ab\x7f\x1b[A\xc3\xbc\r\x03"))
	f.Fuzz(func(t *testing.T, keys []byte) {
		var shown strings.Builder
		typing := &typist{echo: func(s string) { shown.WriteString(s) }}
		for _, k := range keys {
			if done, _, _ := typing.key(k); done {
				typing.line = typing.line[:0]
			}
		}
		expect.True(t, !strings.ContainsAny(shown.String(), "\x1b\x00\u202e\u009b"), "%q shows %q", keys, shown.String())
	})
}
