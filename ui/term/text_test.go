package term_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/mattn/go-runewidth"

	"swarmdeck/expect"
	"swarmdeck/ui/term"
)

// TestEveryCharacterIsAsWideAsTerminalsMakeIt compares the table with wcwidth.
func TestEveryCharacterIsAsWideAsTerminalsMakeIt(t *testing.T) {
	narrow := runewidth.Condition{StrictEmojiNeutral: true}
	for r := rune(0x20); r <= unicode.MaxRune; r++ {
		c, _ := term.Next(string(r))
		if shown, _ := utf8.DecodeRuneInString(c.Text); c.Width > 0 && narrow.RuneWidth(shown) != c.Width {
			t.Errorf("%U is shown as %q, %d wide; wcwidth says %d", r, c.Text, c.Width, narrow.RuneWidth(shown))
		}
	}
}

// hostile is the corpus every fuzz test of this package starts from.
func hostile() []string {
	return []string{
		"", "plain", "a\tb\tc", "two\nlines\r\n", "\x1b[31mred\x1b[0m", "\x1b]52;c;SGVsbG8=\x07x", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
		"\x1bP1$r0m\x1b\\after", "\x1b]never ends", "\x1b[12;", "\x1b", "\x1b\x1b[A", "\u009b31mx\u009d52;c;A\u009cz", "\x9b31m", "\x1b(B\x1b#8\x1bc",
		"\u202edesrever\u202c", "\u2066\u2067\u2068x\u2069", "a\u200bb\u200cc\u200dd\ufeffe", "soft\u00adhyphen", "nbsp\u00a0\u2003\u3000x",
		"⚠️ ❤️ ☺️", "👨‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪🇫", "1️⃣", "世界人民", "한국어", "ᄀ" + "ᅡ" + "ᆨ", "e\u0301\u0302\u0303\u0304\u0305", "\u0301lead",
		"क्षत्रिय", "கொ", "ไทยำ", "שלום עולם", "العربية", "\U000E0041\U000E0042tag", "\ue000\uf8ff", "\xff\xfe\xc0\x80", "\xed\xa0\x80", "�",
		"\x00\x01\x07\x08\x7f", "⟨U+202E⟩", "ｱｶﾞ", "🏽", "\u0600\u0661", "a\u20e3", strings.Repeat("z\u0300\u0301\u0302\u0303\u0304\u0305", 50), "…▸─✓",
	}
}

// harmless fails when s holds anything that may not reach a terminal, or when
// the two ways of counting disagree about it.
func harmless(t *testing.T, s string) {
	t.Helper()
	expect.Must(t, utf8.ValidString(s), "invalid UTF-8: %q", s)
	wc := 0
	narrow := runewidth.Condition{StrictEmojiNeutral: true}
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Variation_Selector) {
			t.Fatalf("%U in %q", r, s)
		}
		wc += narrow.RuneWidth(r)
	}
	g := ansi.StringWidth(s)
	expect.Must(t, g == wc, "grapheme width %d, wcwidth %d: %q", g, wc, s)
	g = ansi.StringWidthWc(s)
	expect.Must(t, g == wc, "toolkit's wcwidth %d, wcwidth %d: %q", g, wc, s)
	w := term.Width(s)
	expect.Must(t, w == wc, "Width %d, wcwidth %d: %q", w, wc, s)
}

func TestClean(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "plain text", "plain text"},
		{"colour", "\x1b[1;31mred\x1b[0m", "red"},
		{"clipboard", "a\x1b]52;c;SGVsbG8=\x07b", "ab"},
		{"hyperlink", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"device control", "\x1bP1$r0m\x1b\\after", "after"},
		{"string without end stays visible", "\x1b]0;rm -rf /", "0;rm -rf /"},
		{"string cut by another escape", "\x1b]0;t\x1b[31mx", "0;tx"},
		{"C1 in UTF-8", "\u009b31mx\u009d0;t\u009cz", "xz"},
		{"raw C1 byte", "\x9b31m", "\uFFFD31m"},
		{"bidi", "a\u202eb\u2066c", "abc"},
		{"zero width", "a\u200bb\ufeffc", "abc"},
		{"tabs", "a\tb\t", "a   b   "},
		{"line break", "a\nb", "a b"},
		{"family", "👨‍👩‍👧", "👨👩👧"},
		{"skin tone", "👍🏽!", "👍!"},
		{"flag", "🇩🇪", "DE"},
		{"keycap", "1\ufe0f\u20e3", "1"},
		{"variation selector", "⚠\ufe0f", "⚠"},
		{"vowels of two parts", "\u0E19\u0E33 \u0EB3", "\u0E19\u0E32\u0E4D \u0EB2\u0ECD"},
		{"accent", "e\u0301", "e\u0301"},
		{"heap of marks", "e\u0301\u0302\u0303\u0304\u0305x", "e\u0301\u0302\u0303x"},
		{"spaces", "a\u00a0\u3000b", "a  b"},
		{"private use", "\ue0b0", "\uFFFD"},
		{"controls", "\x00a\x08\x7fb", "ab"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expect.Is(t, term.Clean(tt.in), tt.want, "Clean", tt.in)
		})
	}
}

func TestRevealSpellsOutWhatIsHidden(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain", "plain"},
		{"rm \u202exyz", "rm ⟨U+202E⟩xyz"},
		{"\x1b[31m", "⟨ESC⟩[31m"},
		{"a\tb\nc\r", "a⟨TAB⟩b⟨LF⟩c⟨CR⟩"},
		{"\xff", `⟨\xff⟩`},
		{"a\u200bb", "a⟨U+200B⟩b"},
		{"a\u00a0b", "a⟨U+00A0⟩b"},
		{"⟨ESC⟩", "⟨U+27E8⟩ESC⟨U+27E9⟩"},
		{"é世", "é世"},
	}
	for _, tt := range tests {
		expect.Is(t, term.Reveal(tt.in), tt.want, "Reveal", tt.in)
	}
}

func TestSuspicious(t *testing.T) {
	for s, want := range map[string]bool{
		"plain": false, "é世界\t\n": false, "a\r\nb": false, "e\u0301": false, "a\rb": true, "\x1b[m": true, "a\u202e": true, "\u200b": true, "\xff": true, "a\ufe0f": true,
	} {
		expect.Is(t, term.Suspicious(s), want, "Suspicious", s)
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		in   string
		w    int
		want string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "abcd…"},
		{"abcdef", 1, "…"},
		{"abcdef", 0, ""},
		{"abcdef", -3, ""},
		{"世界人", 6, "世界人"},
		{"世界人", 5, "世界…"},
		{"世界人", 4, "世…"},
		{"a\tb", 3, "a…"},
		{"ab\x1b[0m", 2, "ab"},
	}
	for _, tt := range tests {
		expect.Is(t, term.Cut(tt.in, tt.w), tt.want, "Cut", tt.in, tt.w)
	}
}

func TestCutMiddleKeepsBothEnds(t *testing.T) {
	for _, tt := range []struct {
		in   string
		w    int
		want string
	}{
		{"abcdefghij", 10, "abcdefghij"}, {"abcdefghij", 7, "abc…hij"}, {"abcdefghij", 2, "a…"}, {"世界人民", 5, "世…民"},
	} {
		expect.Is(t, term.CutMiddle(tt.in, tt.w, "…"), tt.want, "CutMiddle", tt.in, tt.w)
	}
}

func TestWrap(t *testing.T) {
	tests := []struct {
		in   string
		w    int
		want []string
	}{
		{"", 5, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 8, []string{"one two", "three"}},
		{"abcdefgh", 3, []string{"abc", "def", "gh"}},
		{"  indented text", 10, []string{"  indented", "text"}},
		{"a\nb\r\nc", 5, []string{"a", "b", "c"}},
		{"世界人", 5, []string{"世界", "人"}},
		{"世", 1, []string{"?"}},
		{"x", 0, []string{""}},
	}
	for _, tt := range tests {
		got := term.Wrap(tt.in, tt.w)
		expect.Is(t, strings.Join(got, "|"), strings.Join(tt.want, "|"), "Wrap", tt.in, tt.w, got, tt.want)
	}
}

func TestCleanTextIsNotCopied(t *testing.T) {
	s := strings.Repeat("plain ", 100)
	expect.Is(t, testing.AllocsPerRun(100, func() { _ = term.Clean(s) }), 0)
}

// Characters alone, between neighbours and beside what they might join: all of
// the planes' scripts and signs, and some of each long run of ideographs.
func TestCharactersKeepTheirWidthAnywhere(t *testing.T) {
	var row strings.Builder
	for r := rune(0x80); r <= 0xE0200; r++ {
		dense := r < 0x3400 || r > 0xA000 && r < 0xAC00 || r > 0xD7A0 && r < 0x12000 || r > 0x1B000 && r < 0x1FB00 || r > 0xE0000
		if !dense && r%61 != 0 {
			continue
		}
		s := term.Clean(string(r))
		row.WriteString("a" + s + "👍" + s + s + "क" + s + "가")
		if r%8 == 0 {
			harmless(t, row.String())
			row.Reset()
		}
	}
	harmless(t, row.String())
}

// A line of half a megabyte costs a little, whatever it is made of: the work is
// linear, or this takes hours.
func TestEndlessLines(t *testing.T) {
	const size = 1 << 19
	for _, piece := range []string{"x", "\x1b", "\x1b]", "\u009d", "\x1b[1", "\x1b[1;", "\x1bP", "\x1b ", "\u0301", "e\u0301", "世", "\u202e", "\xff", "\t", "\u200d👨", "\u009d\x1b[", "word "} {
		s := strings.Repeat(piece, size/len(piece))
		harmless(t, term.Cut(s, 80))
		n := term.Width(term.CutMiddle(s, 80, "…"))
		expect.True(t, n <= 80, "%q is cut to %d", piece, n)
		expect.Is(t, term.Width(s), term.Width(term.Clean(s)), piece, "is")
		term.Reveal(s)
		term.Suspicious(s)
		for _, line := range term.Wrap(s, 80) {
			expect.Must(t, term.Width(line) <= 80, "%q is wrapped at %d", piece, term.Width(line))
		}
	}
}

func FuzzText(f *testing.F) {
	for i, s := range hostile() {
		f.Add(s, "x"+s, i%12)
	}
	f.Fuzz(func(t *testing.T, a, b string, w int) {
		w = min(max(w, -1), 300)
		ca, cb := term.Clean(a), term.Clean(b)
		harmless(t, ca)
		harmless(t, ca+cb)
		again := term.Clean(ca)
		expect.Must(t, again == ca, "Clean isn't stable: %q, then %q", ca, again)
		harmless(t, term.Reveal(a))
		got := term.Width(a)
		expect.Must(t, got == term.Width(ca), "Width %d, of clean text %d", got, term.Width(ca))
		for _, cut := range []string{term.Cut(a, w), term.CutMiddle(a, w, "…"), term.CutWith(a, w, "...")} {
			harmless(t, cut)
			n := term.Width(cut)
			expect.Must(t, n <= max(w, 0), "cut to %d cells is %d wide: %q", w, n, cut)
		}
		for _, line := range term.Wrap(a, w) {
			harmless(t, line)
			n := term.Width(line)
			expect.Must(t, n <= max(w, 0), "wrapped at %d is %d wide: %q", w, n, line)
		}
	})
}
