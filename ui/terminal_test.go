package ui

import (
	"context"
	"math/rand"
	"strings"
	"testing"

	"swarmdeck/engine/terminal"
	"swarmdeck/expect"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/screen"
)

// picture is what a program could have drawn, of any cells.
func picture(random *rand.Rand, cols, rows int) *terminal.Screen {
	pic := &terminal.Screen{Size: terminal.Size{Cols: cols, Rows: rows}, X: random.Intn(cols), Y: random.Intn(rows), Cursor: true, Runs: true}
	texts := []string{"plain", "\x1b[2J", "\a", "\x1b]52;c;aGk=\a", "漢", "👩‍👩‍👧", "e\u0301\u0301\u0301\u0301\u0301", "\u202e\u200b", "\xff\xfe", "", "\u0301", strings.Repeat("x", 300)}
	for range rows {
		var l terminal.Line
		for range random.Intn(12) {
			l = append(l, terminal.Span{
				Text: texts[random.Intn(len(texts))], Cells: 1 + random.Intn(3),
				Style: terminal.Style{FG: terminal.Color(random.Uint32()), BG: terminal.Color(random.Uint32()), Attrs: terminal.Attrs(random.Intn(256))},
			})
		}
		pic.Lines = append(pic.Lines, l)
	}
	return pic
}

func TestAPictureChangesNothingOutsideItsPane(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	theme := screen.NewTheme("test", nil)
	for range 300 {
		c := screen.New(60, 12)
		c.Fill(c.Bounds(), screen.Header, '#')
		in := screen.Rect{X: 5, Y: 3, W: 40, H: 6}
		inside := c.Sub(in)
		inside.Clear()
		fleet.DrawScreen(inside, picture(random, 80, 20))
		for y := range c.H() {
			for x := range c.W() {
				if got, role, _ := c.At(x, y); !in.Contains(x, y) && (got != "#" || role != screen.Header) {
					t.Fatalf("%d,%d is %q", x, y, got)
				}
			}
		}
		out := c.Render(theme)
		for _, bad := range []string{"\x1b]", "\x1b[2J", "\a", "\u202e", "\u200b", "52;c"} {
			if bad == "52;c" {
				continue // text, where it is harmless
			}
			expect.Must(t, !strings.Contains(out, bad), "%q reaches the terminal", bad)
		}
	}
}

func TestATerminalThatIsNotThereIsSaidToBe(t *testing.T) {
	p := fleet.NewTerminal(context.Background(), nil)
	c := screen.New(20, 3)
	r := newRig(t, 80, 24)
	p.Draw(c, r.m.env(), true)
	expect.Is(t, c.Plain()[0], "…", "drew")
	scope, on := p.Typing()
	expect.True(t, !on && scope != "", "typing %t in %q", on, scope)
}
