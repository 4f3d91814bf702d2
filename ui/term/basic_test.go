package term_test

import (
	"regexp"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/term"
)

func TestAnOldTerminalGetsWhatItKnows(t *testing.T) {
	for in, want := range map[string]string{
		"text é\r\n\x07":                          "text é\r\n\x07",
		"\x1b[1;31mred\x1b[m\x1b[2;3H\x1b[K":      "\x1b[1;31mred\x1b[m\x1b[2;3H\x1b[K",
		"\x1b]2;title\x07on":                      "on",
		"\x1b]2;title\x1b\\on":                    "on",
		"\x1bP1$r q\x1b\\on":                      "on",
		"\x1b[?2026$p\x1b[?u\x1b[>4;2m\x1b[<1u":   "",
		"\x1b[?1049h\x1b[?2004h\x1b[?25l":         "\x1b[?25l",
		"a\x1b[?1049lb":                           "a\x1b[m\x1b[r\x1b[H\x1b[2Jb",
		"\x1b[38:2:1:2:3mx":                       "x",
		"\x1b[\x1b[Kx":                            "\x1b[Kx",
		"\x1b(Bx\x1b7\x1bc":                       "x\x1b7",
		"\x1b[5G\x1b[5dx":                         "x",
		"\x1b[" + strings.Repeat("1;", 99) + "mx": strings.Repeat("1;", 99-31) + "mx",
	} {
		for _, step := range []int{1, 3, len(in)} {
			var out strings.Builder
			w := term.NewBasic(&out, "vt100")
			for rest := in; rest != ""; {
				n := expect.Of(w.Write([]byte(rest[:min(step, len(rest))])))(t)
				rest = rest[n:]
			}
			expect.Is(t, out.String(), want, in, "by", step)
		}
	}
	var out strings.Builder
	_, err := term.NewBasic(&out, "linux-16color").Write([]byte("\x1b[5G\x1b[5d\x1b[3X\x1b[3bx"))
	expect.True(t, err == nil && out.String() == "\x1b[5G\x1b[5d\x1b[3Xx", "%q %v", out.String(), err)
}

func FuzzAnOldTerminalGetsNothingElse(f *testing.F) {
	f.Add("\x1b]2;x\x07\x1b[1m\x1b[?1049h\x1bPq\x1b\\", 2)
	known := regexp.MustCompile(`\x1b(\[[0-9;]*[ABCDHJKLMP@mr]|\[\?(25|7)[hl]|[78DEM])`)
	f.Fuzz(func(t *testing.T, in string, step int) {
		step = max(1, step)
		var out strings.Builder
		w := term.NewBasic(&out, "vt100")
		for rest := in; rest != ""; rest = rest[min(step, len(rest)):] {
			expect.Of(w.Write([]byte(rest[:min(step, len(rest))])))(t)
		}
		expect.True(t, !strings.ContainsRune(known.ReplaceAllString(out.String(), ""), 0x1b), "%q became %q", in, out.String())
	})
}
