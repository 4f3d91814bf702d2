package screen_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

var nasty = []string{
	"plain text", "\x1b[31mred", "\x1b]52;c;AAAA\x07", "世界人民", "👨‍👩‍👧‍👦🏳️‍🌈👍🏽", "🇩🇪", "e\u0301\u0302\u0303\u0304", "\u202edesrever", "a\tb\tc", "x\ny", "\xff\xfe",
	"क्षत्रिय", "ᄀ" + "ᅡ" + "ᆨ", "\u200b\u200d\ufe0f", "\u0301", "🏽", "ｱｶﾞ", "─│┌✓●", "\x9b1m\u009bm", strings.Repeat("wide世", 40), "ำ", "",
}

// Random drawing of hostile text over itself: the picture stays whole.
func TestAnyDrawingKeepsTheRowsWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	pick := func() string { return nasty[rng.IntN(len(nasty))] }
	near := func(n int) int { return rng.IntN(n+12) - 6 }
	for range 400 {
		c := screen.New(rng.IntN(50), rng.IntN(12))
		if rng.IntN(4) == 0 {
			c.SetGlyphs(screen.ASCII())
		}
		for range 40 {
			d := c
			if rng.IntN(2) == 0 {
				d = c.Sub(screen.Rect{X: near(c.W()), Y: near(c.H()), W: near(c.W()), H: near(c.H())})
			}
			x, y, w, h, role := near(d.W()), near(d.H()), near(d.W()), near(d.H()), screen.Role(rng.IntN(40))
			switch rng.IntN(9) {
			case 0:
				d.Fill(screen.Rect{X: x, Y: y, W: w, H: h}, role, []rune(pick() + "x")[0])
			case 1:
				d.Box(screen.Rect{X: x, Y: y, W: w, H: h}, role, pick())
			case 2:
				d.Paint(screen.Rect{X: x, Y: y, W: w, H: h}, role)
			case 3:
				d.TextIn(x, y, w, role, pick())
			case 4:
				d.TextRight(x, y, w, role, pick())
			case 5:
				d.TextMiddle(x, y, w, role, pick())
			case 6:
				d.SetCursor(x, y)
			default:
				d.Text(x, y, role, pick())
			}
		}
		whole(t, c)
		for y, row := range c.Plain() {
			for _, r := range row {
				expect.Must(t, !unicode.In(r, unicode.Cc, unicode.Cf), "row %d holds %U", y, r)
			}
		}
		for y, row := range c.Roles() {
			expect.Must(t, len(row) <= c.W(), "roles of row %d are %d long on %d", y, len(row), c.W())
		}
		x, y, ok := c.Cursor()
		expect.Must(t, !ok || c.Bounds().Contains(x, y), "cursor at %d,%d", x, y)
	}
}

func FuzzText(f *testing.F) {
	for i, s := range nasty {
		f.Add(s, nasty[(i*7)%len(nasty)], i-3, 2*i-5, i%20)
	}
	f.Fuzz(func(t *testing.T, a, b string, x, y, w int) {
		c := screen.New(min(max(w, 0), 60), 2)
		c.Text(x%80, 0, screen.Good, a)
		c.TextIn(y%80, 0, w%70, screen.Bad, b)
		c.TextRight(x%80, 1, w%70, screen.Bad, a)
		c.TextMiddle(y%80, 1, y%70, screen.Match, b)
		c.Box(c.Bounds(), screen.Border, a)
		whole(t, c)
	})
}

func TestSizesThatTerminalsClaim(t *testing.T) {
	for _, s := range [][2]int{{0, 0}, {-1, -1}, {1, 1}, {0, 5}, {5, 0}, {1 << 40, 1}} {
		c := screen.New(s[0], s[1])
		c.Box(c.Bounds(), screen.Border, "title")
		c.Text(0, 0, screen.Text, "世")
		whole(t, c)
		c.Resize(3, 2)
		c.Text(0, 0, screen.Text, "世")
		whole(t, c)
	}
}

func TestStatesHaveASignAndAWord(t *testing.T) {
	seen := map[string]string{}
	for _, word := range strings.Fields("idle running queued open paused blocked succeeded failed cancelled offline timed_out stopped") {
		for _, g := range []*screen.Glyphs{screen.Unicode(), screen.ASCII()} {
			label := screen.StateOf(word).Glyph(g) + " " + word
			expect.True(t, strings.HasSuffix(label, " "+word) && (!strings.HasPrefix(label, screen.Unknown.Glyph(g)+" ") || word == "cancelled"),
				"%s is labelled %q", word, label)
			sign := strings.TrimSuffix(label, " "+word)
			other, twice := seen[sign]
			expect.True(t, !twice || other == word, "%s and %s share the sign %q", word, other, sign)
			seen[sign] = word
		}
	}
}

func TestRolesHaveNamesAndLettersOfTheirOwn(t *testing.T) {
	letters := map[byte]screen.Role{}
	for r := range screen.Roles {
		got, ok := screen.ParseRole(r.String())
		expect.True(t, ok && got == r, "%s reads as %v", r, got)
		if other, twice := letters[r.Letter()]; twice {
			t.Errorf("%s and %s share the letter %c", r, other, r.Letter())
		}
		letters[r.Letter()] = r
	}
}

func TestRenderingAllocatesTheStringOnly(t *testing.T) {
	c := screen.New(200, 50)
	th := theme()
	frame := func() {
		c.Clear()
		for y := range c.H() {
			x := c.Text(0, y, screen.Good, "✓ succeeded")
			x = c.TextIn(x+1, y, 40, screen.Accent, "t_01J9ZX3F8Q2M4V5B6N7P8R9S0T")
			c.Text(x+1, y, screen.Text, "世界 and plain text that goes on to the edge of the screen and over")
		}
		_ = c.Render(th)
	}
	frame()
	n := testing.AllocsPerRun(50, frame)
	expect.True(t, n <= 2, "%v allocations a frame", n)
}

func BenchmarkFrame(b *testing.B) {
	for _, text := range []string{"plain text of a row in a table", "✓ ● … ▸ ─ signs and text", "世界人民 e\u0301 wide and marked"} {
		b.Run(strings.Fields(text)[0], func(b *testing.B) {
			c := screen.New(200, 50)
			th := theme()
			b.ReportAllocs()
			for b.Loop() {
				c.Clear()
				for y := range c.H() {
					for x := 0; x < c.W(); x += 40 {
						c.TextIn(x, y, 39, screen.Role(y%int(screen.Roles)), text)
					}
				}
				_ = c.Render(th)
			}
		})
	}
}
