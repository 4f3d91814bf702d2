package emulator

import (
	"strings"
	"testing"

	"swarmdeck/engine/terminal"
	"swarmdeck/expect"
)

func TestTheMouseIsToldToAProgramThatAskedForIt(t *testing.T) {
	press := terminal.Input{Mouse: &terminal.Mouse{Button: terminal.MouseLeft, Act: terminal.MousePress, X: 4, Y: 2}}
	release := terminal.Input{Mouse: &terminal.Mouse{Button: terminal.MouseLeft, Act: terminal.MouseRelease, X: 4, Y: 2}}
	drag := terminal.Input{Mouse: &terminal.Mouse{Button: terminal.MouseRight, Act: terminal.MouseDrag, X: 9, Y: 0, Ctrl: true}}
	wheel := terminal.Input{Mouse: &terminal.Mouse{Button: terminal.WheelDown, Act: terminal.MousePress, X: 250, Y: 2}}
	for _, c := range []struct{ asked, want string }{
		{"", ""},
		{"\x1b[?1006h", ""},
		{"\x1b[?9h", "\x1b[M %#"},
		{"\x1b[?1000h", "\x1b[M %#\x1b[M#%#"},
		{"\x1b[?1000h\x1b[?1006h", "\x1b[<0;5;3M\x1b[<0;5;3m\x1b[<65;251;3M"},
		{"\x1b[?1002;1006h", "\x1b[<0;5;3M\x1b[<0;5;3m\x1b[<50;10;1M\x1b[<65;251;3M"},
		{"\x1b[?1003;1006h\x1b[?1003l", ""},
		{"\x1b[?1002;1006h\x1bc", ""},
	} {
		e, s := screen(t, 300, 5, c.asked)
		got, err := e.Keys([]terminal.Input{press, release, drag, wheel})
		if err != nil || string(got) != c.want {
			t.Errorf("after %q: %q, %v; want %q", c.asked, got, err, c.want)
		}
		expect.Is(t, s.Mouse, c.want != "", "after", c.asked, "the picture says")
	}
}

func TestACharacterThatDoesNotFitSpoilsNoOther(t *testing.T) {
	for said, want := range map[string]string{
		"\x1b[1;20H漢x":                "\n漢x",                        // no room for it: it goes on below
		"\x1b[?7l\x1b[1;20H漢x":        strings.Repeat(" ", 19) + "x", // or stands at the edge, and is written over
		"漢字\x1b[1;2Hx":                " x字",                         // over the half of one
		"漢字\x1b[1;3H\x1b[P":           "漢",                           // half of it is taken away
		"漢字\x1b[1;2H\x1b[@":           "   字",                        // parted
		"ab\xe6\xbc":                  "ab",                          // the begin of one
		"a\xe6\xbc\x1b[1mb\xff":       "a\uFFFD\uFFFDb\uFFFD",        // and no more of it
		"\x80\x9b31ma\u009b2Jb":       "\uFFFD\uFFFD31ma2Jb",         // controls of eight bits are none
		"\u0301\u200db":               "b",                           // a mark with nothing to stand on
		"e\u0301\x1b[1;1Hx":           "x",                           // goes with what it stood on
		"\x1b[1;20He\u0301\u0302y":    strings.Repeat(" ", 19) + "e\u0301\u0302\ny",
		"ab\x1b[1\r;3Hc":              "abc", // a control within a sequence, which goes on
		"a\u202eb\u200bc":             "abc",
		"👩\u200d👩\u200d👧x":            "👩\u200d👩\u200d👧x",
		"🇩🇪\x1b[3Gx🇫":                 "🇩🇪x🇫", // a flag takes two places, and so does half of one
		"👍🏽\x1b[3Gx":                  "👍🏽x",
		"ที่\x1b[2Gน\u0E33\x1b[4Gx":   "ที่น\u0E33x", // marks stand on it, and this vowel beside it
		"\x1b[1;19H👩\u200d👧\u200d👧yz": strings.Repeat(" ", 18) + "👩\u200d👧\u200d👧\nyz",
	} {
		e, s := screen(t, 20, 5, said)
		expect.Is(t, s.Text(), want, said)
		expect.Is(t, whole(e)+well(s), "", said)
	}
}

// What is no part of the picture leaves the picture as it is, wherever it is cut.
func TestWhatIsNotUnderstoodIsPassedOver(t *testing.T) {
	for _, said := range []string{
		"\x1b]52;c;aGVsbG8=\a", "\x1b]52;c;?\x1b\\", "\x1b]8;;file:///etc/passwd\x1b\\", "\x1b]10;?\a", "\x1b]7;file://x\a", "\x1b]1337;File=inline=1:AAAA\a",
		"\x1bP+q544e\x1b\\", "\x1b_Gf=100;AAAA\x1b\\", "\x1b^private\x1b\\", "\x1bXstring\x1b\\", "\x1bPq~~~\x1b\\", "\x1b]0;" + strings.Repeat("t", 1<<16) + "\a",
		"\x1b[?1004h", "\x1b[?2026h", "\x1b[?2048h", "\x1b[8;1000;1000t", "\x1b[22;0t", "\x1b[3;0;0t", "\x1b[>4;2m", "\x1b[>1u", "\x1b[=1;1u", "\x1b[?1;2;3S",
		"\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;26;27;28;29;30;31;32;33;34;35;36;37;38;39;40z", "\x1b[99999999999999999999q", "\x1b[1<2m", "\x1b[1 q", "\x1b%G", "\x1b(B",
	} {
		for cut := range min(len(said), 40) {
			e, s := screen(t, 20, 5, "before", said[:cut], said[cut:], "after")
			expect.Is(t, s.Text(), "beforeafter", said, "cut at", cut)
			if s.Title != "" || s.Size != (terminal.Size{Cols: 20, Rows: 5}) || e.cur.pen != (terminal.Style{}) {
				t.Errorf("%.60q: title %q, size %s, style %+v", said, s.Title, s.Size, e.cur.pen)
			}
		}
	}
}

func TestAProgramIsAnsweredWhatItsTerminalIs(t *testing.T) {
	for asked, want := range map[string]string{
		"\x1b[c": "\x1b[?62;1;6;22c", "\x1b[>c": "\x1b[>1;10;0c", "\x1b[5n": "\x1b[0n", "ab\x1b[6n": "\x1b[1;3R", "\x1b[?25$p": "\x1b[?25;1$y", "\x1b[?2004$p": "\x1b[?2004;2$y", "\x1b[?2026$p": "\x1b[?2026;0$y",
		"\x1b]52;c;?\a": "", "\x1b]11;?\a": "", "\x1b[21t": "", "\x1bP$qm\x1b\\": "", // what it could be made to type by itself
	} {
		var got strings.Builder
		e := New(terminal.Size{Cols: 20, Rows: 5}, 0, Signals{Reply: func(data []byte) { got.Write(data) }})
		_, _ = e.Write([]byte(asked))
		expect.Is(t, got.String(), want, asked)
	}
}
