package emulator

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"

	"swarmdeck/engine/terminal"
	"swarmdeck/expect"
)

func screen(t testing.TB, cols, rows int, said ...string) (*Emulator, *terminal.Screen) {
	t.Helper()
	e := New(terminal.Size{Cols: cols, Rows: rows}, 0, Signals{})
	for _, s := range said {
		_, _ = e.Write([]byte(s))
	}
	return e, e.Screen(0, 0)
}

func TestAPictureIsWhatAProgramDraws(t *testing.T) {
	_, s := screen(t, 40, 6, "one\r\n\x1b[1;31mtwo\x1b[m \x1b[48;5;200mx\x1b[m\x1b[4;10Hat\x1b[38;2;1;2;3mrgb\x1b[m 漢字")
	if got, want := s.Text(), "one\ntwo x\n\n         atrgb 漢字"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	two := s.Lines[1]
	if len(two) != 3 || two[0] != (terminal.Span{Text: "two", Cells: 3, Style: terminal.Style{FG: terminal.Palette(1), Attrs: terminal.Bold}}) || two[2].Style.BG != terminal.Palette(200) {
		t.Errorf("spans %+v", two)
	}
	if at := s.Lines[3]; at[1].Style.FG != terminal.RGB(1, 2, 3) || at[len(at)-1].Cells != 2 {
		t.Errorf("spans %+v", at)
	}
	if s.X != 19 || s.Y != 3 || !s.Cursor {
		t.Errorf("cursor at %d,%d, shown %t", s.X, s.Y, s.Cursor)
	}
}

func TestAStyleLastsUntilItIsTakenBack(t *testing.T) {
	all := terminal.Bold | terminal.Faint | terminal.Italic | terminal.Underline | terminal.Blink | terminal.Reverse | terminal.Conceal | terminal.Strike
	for sgr, want := range map[string]terminal.Attrs{
		"1;2;3;4;5;7;8;9": all, "1;2;3;4;5;7;8;9;22;24": all &^ (terminal.Bold | terminal.Faint | terminal.Underline), "5;9;25": terminal.Strike, "5;9;29": terminal.Blink,
		"4:3": terminal.Underline, "4:3;4:0": 0, "9;3;0": 0, "6;10;26": 0,
	} {
		_, s := screen(t, 20, 5, "\x1b["+sgr+"mx")
		expect.Is(t, s.Lines[0][0].Style.Attrs, want, sgr)
	}
}

func TestLinesThatLeaveTheScreenAreKeptUpToABound(t *testing.T) {
	e, _ := screen(t, 20, 5)
	var all strings.Builder
	for i := range terminal.MaxBack + 500 {
		fmt.Fprintf(&all, "line %d\r\n", i)
	}
	_, _ = e.Write([]byte(all.String()))
	s := e.Screen(0, 0)
	if s.Above != terminal.MaxBack {
		t.Fatalf("%d lines are kept", s.Above)
	}
	last := terminal.MaxBack + 499
	if want := fmt.Sprintf("line %d", last); !strings.HasSuffix(s.Text(), want) {
		t.Errorf("screen %q", s.Text())
	}
	s = e.Screen(0, 3)
	if want := fmt.Sprintf("line %d\n", last-6); s.Back != 3 || s.Cursor || !strings.HasPrefix(s.Text(), want) {
		t.Errorf("3 lines up: %d, %q", s.Back, s.Text())
	}
	if s = e.Screen(0, 1<<30); s.Back != terminal.MaxBack {
		t.Errorf("scrolled back by %d", s.Back)
	}
	_, _ = e.Write([]byte("\x1b[3J"))
	if s = e.Screen(0, 1); s.Above != 0 || s.Back != 0 {
		t.Errorf("after it was cleared: %d lines", s.Above)
	}
}

func TestAProgramThatHasTheScreenToItselfGivesItBack(t *testing.T) {
	e, _ := screen(t, 30, 5, "$ less\r\n", "\x1b[?1049h\x1b[Hpage one\x1b[?25l")
	s := e.Screen(0, 5)
	if !s.Full || s.Cursor || s.Back != 0 || s.Text() != "page one" {
		t.Errorf("full: %+v %q", s, s.Text())
	}
	for range 3000 {
		_, _ = e.Write([]byte("scrolls and scrolls\r\n"))
	}
	_, _ = e.Write([]byte("\x1b[?25h\x1b[?1049l$ "))
	if s = e.Screen(0, 0); s.Full || !s.Cursor || s.Above != 0 || s.Text() != "$ less\n$" {
		t.Errorf("after: %+v %q", s, s.Text())
	}
	_, _ = e.Write([]byte("\x1b[?1049h"))
	if s = e.Screen(0, 0); s.Text() != "" {
		t.Errorf("another begins with %q", s.Text())
	}
}

func TestAProgramTellsWhatIsNotItsPicture(t *testing.T) {
	var told []string
	say := func(what string) func(string) { return func(s string) { told = append(told, what+" "+s) } }
	e := New(terminal.Size{Cols: 40, Rows: 5}, 0, Signals{
		Bell: func() { told = append(told, "bell") }, Notice: say("notice"),
		Progress: func(on bool) { told = append(told, fmt.Sprint("progress ", on)) },
		Hook:     func(w, s string) { told = append(told, "hook "+w+" "+s) },
		Prompt:   func(b byte) { told = append(told, "prompt "+string(b)) },
	})
	for _, s := range []string{
		"\a", "\x1b]9;come here\a", "\x1b]9;4;3;\x1b\\", "\x1b]9;4;0\a", "\x1b]777;notify;Title;text\a", "\x1b]777;swarmdeck;waits;which file?\a",
		"\x1b]133;A\a", "\x1b]133;D;1\a", "\x1b]52;c;aGVsbG8=\a", "\x1b]8;;http://x\alink\x1b]8;;\a", "\x1b]2;a title: Ü ✜\a", "\x1b]777;swarmdeck\a", "\x1b]777\a",
	} {
		_, _ = e.Write([]byte(s))
	}
	want := "bell|notice come here|progress true|progress false|notice Title: text|hook waits which file?|prompt A|prompt D|hook  "
	expect.Is(t, strings.Join(told, "|"), want, "told")
	if s := e.Screen(0, 0); s.Title != "a title: Ü ✜" || s.Text() != "link" {
		t.Errorf("title %q, text %q", s.Title, s.Text())
	}
}

func TestKeysHaveTheCodesOfATerminal(t *testing.T) {
	e, _ := screen(t, 20, 5)
	for name, want := range map[string]string{
		"a": "a", "ctrl+c": "\x03", "ctrl+]": "\x1d", "ctrl+space": "\x00", "alt+x": "\x1bx", "enter": "\r", "shift+tab": "\x1b[Z", "backspace": "\x7f",
		"up": "\x1b[A", "ctrl+right": "\x1b[1;5C", "f1": "\x1bOP", "f5": "\x1b[15~", "shift+delete": "\x1b[3;2~", "alt+enter": "\x1b\r", "é": "é", "+": "+", "ctrl++": "",
		"hyper": "", "\x1b": "", "ctrl+": "",
	} {
		got, err := e.Keys([]terminal.Input{{Key: name}})
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
	_, _ = e.Write([]byte("\x1b[?1h\x1b[?2004h"))
	got, _ := e.Keys([]terminal.Input{{Key: "up"}, {Text: "ls"}, {Paste: "a\nb\x1b[201~\x03c"}})
	if want := "\x1bOAls\x1b[200~a\rb[201~c\x1b[201~"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// well reports what is wrong with a picture, "" for nothing.
func well(s *terminal.Screen) string {
	if s.Cols < terminal.MinCols || s.Cols > terminal.MaxCols || s.Rows < terminal.MinRows || s.Rows > terminal.MaxRows {
		return "size " + s.Size.String()
	}
	if len(s.Lines) > s.Rows || s.X < 0 || s.X > s.Cols || s.Y < 0 || s.Above > terminal.MaxBack || len(s.Title) > terminal.MaxTitle+8 {
		return fmt.Sprintf("%d lines, cursor %d,%d, %d above", len(s.Lines), s.X, s.Y, s.Above)
	}
	for _, l := range s.Lines {
		n := 0
		for _, span := range l {
			n += span.Cells
			if span.Cells < 1 || !utf8.ValidString(span.Text) || strings.ContainsFunc(span.Text, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
				return fmt.Sprintf("span %+v", span)
			}
		}
		if n > s.Cols {
			return fmt.Sprintf("a line of %d cells in %d: %+v", n, s.Cols, l)
		}
	}
	return ""
}

// whole reports what is wrong with the places of a screen.
func whole(e *Emulator) string {
	g := e.grid()
	for y, l := range g.lines {
		if len(l.cells) != g.cols || len(g.lines) != g.rows {
			return fmt.Sprintf("line %d has %d places of %d", y, len(l.cells), g.cols)
		}
		for x := range l.cells {
			if tail := x > 0 && l.cells[x-1].wide; l.cells[x].tail != tail || l.cells[x].wide && x+1 == g.cols {
				return fmt.Sprintf("half of a wide character at %d,%d", x, y)
			}
		}
	}
	if c := e.cur; c.x < 0 || c.x >= g.cols || c.y < 0 || c.y >= g.rows || g.top > g.bottom || g.bottom >= g.rows {
		return fmt.Sprintf("cursor %d,%d, scrolls %d-%d", c.x, c.y, g.top, g.bottom)
	}
	return ""
}

func FuzzAProgramMayWriteAnything(f *testing.F) {
	for _, s := range []string{
		"\x1b[?1049h\x1b[99999999999999999;99999H\x1b[65535b\x1b[65535S", "\x1bP0;0;8q\"1;1;1000;1000#0;2;0;0;0~~~\x1b\\", "\x1b]52;c;AAAA\a", "\x1b[1;1r\x1b[5;2r\x1bM\x1bD\n",
		"\x1b[?69h\x1b[10;5s漢\x1b[20G字字", "\x1b[3g\t\t\x1b[65535I\x1b[65535Z", "e\u0301\u0301\u0301\u0301", "\xff\xfe\x9b31m\x90", "\x1bc\x1b[!p\x1b[?6h\x1b[0;0f",
		"👩‍👩‍👧‍👦🏳️‍🌈", "\x1b[2J\x1b[3J\x1b[?1047h\x1b[?47l\x1b[?1048h", "\x1b]0;" + strings.Repeat("x", 5000) + "\a", "\x1b[38;2;999;1;1mx\x1b[48;5;999mx", "\x1b[4h\x1b[65535@\x1b[65535P",
	} {
		f.Add([]byte(s), uint16(80), uint16(24))
	}
	f.Fuzz(func(t *testing.T, said []byte, cols, rows uint16) {
		e := New(terminal.Size{Cols: int(cols), Rows: int(rows)}, 0, Signals{})
		_, _ = e.Write(said)
		if bad := whole(e); bad != "" {
			t.Fatal(bad)
		}
		for _, back := range []int{0, 7} {
			if bad := well(e.Screen(0, back)); bad != "" {
				t.Fatal(bad)
			}
		}
		e.Resize(terminal.Size{Cols: int(rows), Rows: int(cols)})
		if bad := whole(e); bad != "" {
			t.Fatal(bad)
		}
		_, _ = e.Write(said)
		if bad := whole(e); bad != "" {
			t.Fatal(bad)
		}
		if bad := well(e.Screen(0, 0)); bad != "" {
			t.Fatal(bad)
		}
	})
}

// A sequence whose work is not bounded would not come to an end here.
func TestAHostileProgramLeavesAScreenThatIsWell(t *testing.T) {
	e, _ := screen(t, terminal.MaxCols, terminal.MaxRows)
	random := rand.New(rand.NewSource(1))
	junk := make([]byte, 32<<10)
	random.Read(junk)
	for name, said := range map[string]string{
		"repeats": "x" + strings.Repeat("\x1b[65535b", 30), "scrolls": strings.Repeat("\x1b[65535S", 20), "tabs": strings.Repeat("\x1b[65535I\x1b[65535Z", 500),
		"screens": strings.Repeat("\x1b[?1049h\x1b[?1049l", 10), "inserts": strings.Repeat("\x1b[65535@\x1b[65535L", 100), "questions": strings.Repeat("\x1b[c\x1b[6n", 5000),
		"junk": string(junk), "a long link": "\x1b]8;;" + strings.Repeat("x", 1<<20) + "\alink", "marks": "a" + strings.Repeat("\u0301", 100_000), "a sixel": "\x1bPq" + strings.Repeat("~", 1<<20) + "\x1b\\",
	} {
		_, _ = e.Write([]byte(said))
		expect.Is(t, well(e.Screen(0, 0)), "", name)
	}
}

// What programs write most: a build's log, an editor that draws its whole screen, one
// that scrolls a part of it, and a line that is typed. The screen is looked at after each.
func BenchmarkPrograms(b *testing.B) {
	var log, page strings.Builder
	for i := range 100 {
		fmt.Fprintf(&log, "\x1b[2m%08d\x1b[m \x1b[1;32mok\x1b[m  \x1b[38;5;39mengine/judge\x1b[m\t%d.%03ds  coverage: \x1b[33m%d%%\x1b[m of statements\r\n", i, i%9, i, i)
	}
	for y := range 50 {
		fmt.Fprintf(&page, "\x1b[%d;1H\x1b[38;5;130m%4d \x1b[m%s\x1b[K", y+1, y, strings.Repeat("\x1b[38;2;200;100;50mfunc\x1b[39m name\x1b[35m(\x1b[m", 18))
	}
	for _, p := range []struct{ name, said string }{
		{"log", log.String()},
		{"repaint", page.String()},
		{"scroll", strings.Repeat("\x1b[1;49r\x1b[49;1H\nthe next line of a file \x1b[32mwith a colour\x1b[m\x1b[r\x1b[50;1H12,1", 10)},
		{"typing", "\rls\x1b[K -la\b\b\x1b[K"},
	} {
		b.Run(p.name, func(b *testing.B) {
			e, _ := screen(b, 200, 50)
			b.SetBytes(int64(len(p.said)))
			for b.Loop() {
				_, _ = e.Write([]byte(p.said))
				e.Screen(0, 0)
			}
		})
	}
}
