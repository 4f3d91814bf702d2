package logview_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"swarmdeck/expect"
	"swarmdeck/ui/logview"
	"swarmdeck/ui/screen"
)

// log is a source of made-up lines, of which only some may be at hand.
type log struct {
	last  uint64
	have  uint64 // lines before it are not at hand
	asked int
	text  func(seq uint64) string
	buf   []logview.Line
}

func (l *log) Last() uint64 { return l.last }

func (l *log) Lines(from uint64, n int) []logview.Line {
	l.buf = l.buf[:0]
	for seq := max(from, l.have, 1); seq <= l.last && len(l.buf) < n; seq++ {
		var text string
		if l.text != nil {
			text = l.text(seq)
		} else {
			text = fmt.Sprintf("line %d", seq)
		}
		l.buf = append(l.buf, logview.Line{Seq: seq, Text: text})
		l.asked++
	}
	return l.buf
}

func shown(v *logview.View, w, h int) string {
	c := screen.New(w, h)
	v.Draw(c, c.Bounds())
	return strings.Join(c.Plain(), "|")
}

func do(v *logview.View, actions string) {
	for _, a := range strings.Fields(actions) {
		v.Do(a)
	}
}

func TestFollowsTheEndUntilScrolled(t *testing.T) {
	src := &log{last: 3}
	var v logview.View
	v.SetSource(src)
	step := func(actions, want string) {
		t.Helper()
		do(&v, actions)
		expect.Is(t, shown(&v, 10, 3), want, actions, "shows")
	}
	step("", "line 1|line 2|line 3")
	src.last = 5
	step("", "line 3|line 4|line 5")
	step("up", "line 2|line 3|line 4")
	src.last = 9
	step("", "line 2|line 3|line 4")
	step("down", "line 3|line 4|line 5")
	step("top", "line 1|line 2|line 3")
	step("page-down", "line 4|line 5|line 6")
	step("bottom", "line 7|line 8|line 9")
	expect.True(t, v.Following(), "the end is not followed")
	step("follow", "line 7|line 8|line 9")
	src.last = 10
	step("", "line 7|line 8|line 9")
	step("down", "line 8|line 9|line 10")
	step("down", "line 8|line 9|line 10")
	expect.True(t, v.Following(), "reaching the end doesn't follow")
}

func TestWraps(t *testing.T) {
	src := &log{last: 3, text: func(seq uint64) string { return strings.Repeat(string(rune('a'+seq-1)), 7) }}
	var v logview.View
	v.SetSource(src)
	do(&v, "wrap")
	for _, tt := range []struct{ actions, want string }{
		{"", "bbb|cccc|ccc"},
		{"up", "bbbb|bbb|cccc"},
		{"up up", "aaaa|aaa|bbbb"},
		{"up", "aaaa|aaa|bbbb"},
		{"down", "aaa|bbbb|bbb"},
		{"down down", "bbb|cccc|ccc"},
		{"wrap top", "aaa…|bbb…|ccc…"},
		{"right", "||"},
		{"left", "aaa…|bbb…|ccc…"},
	} {
		do(&v, tt.actions)
		expect.Is(t, shown(&v, 4, 3), tt.want, tt.actions, "shows")
	}
}

func TestAWrappedLineKeepsItsBreaksAndItsWords(t *testing.T) {
	src := &log{last: 1, text: func(uint64) string { return "the first thing\n\nand a second one" }}
	var v logview.View
	v.SetSource(src)
	do(&v, "wrap")
	got, want := shown(&v, 10, 5), "the first|thing||and a|second one"
	expect.True(t, got == want, "shows %s, want %s", got, want)
}

func TestSearchGoesToMatchesAndMarksThem(t *testing.T) {
	src := &log{last: 1000, text: func(seq uint64) string {
		if seq%100 == 0 {
			return fmt.Sprintf("a \x1b[1mBANG\x1b[m %d", seq)
		}
		return "quiet"
	}}
	var v logview.View
	v.SetSource(src)
	do(&v, "top")
	shown(&v, 20, 5)
	expect.Must(t, v.Search("bang"), "nothing found")
	c := screen.New(20, 5)
	v.Draw(c, c.Bounds())
	got := strings.Join(c.Plain(), "|")
	expect.Must(t, got == "quiet|quiet|a BANG 100|quiet|quiet", "shows %s", got)
	got = c.Roles()[2]
	expect.Must(t, got == "..MMMM", "roles are %s", got)
	do(&v, "next-match next-match")
	got = shown(&v, 20, 5)
	expect.Must(t, strings.Contains(got, "BANG 300"), "shows %s", got)
	do(&v, "prev-match")
	got = shown(&v, 20, 5)
	expect.Must(t, strings.Contains(got, "BANG 200"), "shows %s", got)
	expect.Must(t, !v.Search("nowhere"), "found what isn't there")
	do(&v, "wrap")
	v.Search("bang")
	c = screen.New(6, 5)
	v.Draw(c, c.Bounds())
	got = strings.Join(c.Roles(), "|")
	expect.Must(t, strings.Contains(got, "..MMMM"), "wrapped roles are %s", got)
}

func TestLinesThatAreNotAtHand(t *testing.T) {
	src := &log{last: 100, have: 90}
	var v logview.View
	v.SetSource(src)
	shown(&v, 10, 5)
	expect.Must(t, !func() bool { _, n := v.Missing(); return n != 0 }(), "something is missing at the end")
	do(&v, "top")
	got := shown(&v, 10, 3)
	expect.Must(t, got == "…|…|…", "shows %s", got)
	from, n := v.Missing()
	expect.Must(t, from == 1 && n == 3, "missing %d lines from %d", n, from)
}

func TestHeadAndEmpty(t *testing.T) {
	v := logview.View{Empty: "nothing yet"}
	expect.Is(t, shown(&v, 20, 2), "nothing yet|", "shows")
	v.SetSource(heads{})
	do(&v, "wrap")
	expect.Is(t, shown(&v, 12, 3), "12:00 abcdef|      ghi|", "shows")
}

type heads struct{}

func (heads) Last() uint64 { return 1 }
func (heads) Lines(uint64, int) []logview.Line {
	return []logview.Line{{Seq: 1, Head: "12:00", HeadRole: screen.Dim, Text: "abcdefghi"}}
}

// A frame costs the same whatever the length of the log.
func TestAFrameReadsTheWindowOnly(t *testing.T) {
	src := &log{last: 1_000_000, text: func(uint64) string { return "some text" }}
	var v logview.View
	v.SetSource(src)
	c := screen.New(80, 24)
	v.Draw(c, c.Bounds())
	src.asked = 0
	n := testing.AllocsPerRun(100, func() { v.Draw(c, c.Bounds()) })
	expect.True(t, n <= 2, "%v allocations a frame", n)
	got := src.asked / 101
	expect.True(t, got <= 24, "%d lines read a frame", got)
}

func TestAnyActionOnAnyLog(t *testing.T) {
	actions := strings.Fields("up down left right top bottom half-up half-down page-up page-down follow wrap next-match prev-match")
	texts := []string{"", "plain", "世界人民", "\x1b[31mred", "a\tb", strings.Repeat("long ", 300), "e\u0301\u202e", "\xff"}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 120 {
		src := &log{last: rng.Uint64N(60), text: func(seq uint64) string { return texts[seq%uint64(len(texts))] }}
		var v logview.View
		v.SetSource(src)
		v.Search([]string{"", "l", "世"}[rng.IntN(3)])
		for range 60 {
			do(&v, actions[rng.IntN(len(actions))])
			src.last += rng.Uint64N(4)
			src.have = rng.Uint64N(src.last + 2)
			w, h := rng.IntN(30), rng.IntN(12)
			c := screen.New(w, h)
			v.Draw(c, c.Bounds())
			for _, row := range strings.Split(c.Render(screen.NewTheme("", nil)), "\n") {
				got := ansi.StringWidth(row)
				expect.Must(t, h <= 0 || got == w, "a row of %d cells on %d", got, w)
			}
		}
	}
}

func BenchmarkFrame(b *testing.B) {
	for _, n := range []uint64{100, 1_000_000} {
		b.Run(fmt.Sprintf("lines=%d", n), func(b *testing.B) {
			src := &log{last: n, text: func(uint64) string { return "2026-01-02 a line of a log that is rather ordinary" }}
			var v logview.View
			v.SetSource(src)
			c := screen.New(120, 40)
			b.ReportAllocs()
			for b.Loop() {
				v.Draw(c, c.Bounds())
			}
		})
	}
}
