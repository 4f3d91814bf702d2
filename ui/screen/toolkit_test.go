package screen_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

// The toolkit reads what Render writes as the same cells, whichever way it
// counts: what a test sees on the canvas is what a terminal gets.
func TestTheToolkitSeesTheSamePicture(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	th := theme()
	for range 200 {
		c := screen.New(1+rng.IntN(60), 1+rng.IntN(12))
		for range 30 {
			c.TextIn(rng.IntN(c.W()), rng.IntN(c.H()), rng.IntN(30), screen.Role(rng.IntN(int(screen.Roles))), nasty[rng.IntN(len(nasty))])
		}
		for _, method := range []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth} {
			buf := uv.NewScreenBuffer(c.W(), c.H())
			buf.Method = method
			uv.NewStyledString(c.Render(th)).Draw(buf, buf.Bounds())
			for y := range c.H() {
				for x := range c.W() {
					text, role, _ := c.At(x, y)
					k := buf.CellAt(x, y)
					if k.Content != text {
						t.Fatalf("cell %d,%d is %q, the toolkit has %q\n%q", x, y, text, k.Content, strings.Join(c.Plain(), "\n"))
					}
					if bold := th.Style(role).GetBold(); text != "" && (k.Style.Attrs&uv.AttrBold != 0) != bold {
						t.Fatalf("cell %d,%d of role %s is bold: %v", x, y, role, !bold)
					}
				}
			}
		}
	}
}

// What a part of the toolkit renders is as harmless as any text, and stays in its place.
func TestAWidgetIsTextInRoles(t *testing.T) {
	c := screen.New(8, 2)
	c.Widget(screen.Rect{X: 1, W: 6, H: 1}, screen.Input, "a"+screen.Look(screen.Bad).Render("b")+screen.Look(screen.Input).Reverse(true).Render("c")+"\u0301\nd")
	expect.Is(t, strings.Join(append(c.Plain(), c.Roles()...), "|"), " abc\u0301||.ixiiii|")
	x, y, ok := c.Cursor()
	expect.True(t, ok && x == 3 && y == 0, "the cursor is at %d,%d: %v", x, y, ok)
	rng := rand.New(rand.NewPCG(11, 12))
	for range 500 {
		c := screen.New(rng.IntN(30), rng.IntN(6))
		r := screen.Rect{X: rng.IntN(20) - 2, Y: rng.IntN(4) - 1, W: rng.IntN(30), H: rng.IntN(6)}
		c.Widget(r, screen.Input, nasty[rng.IntN(len(nasty))]+"\n"+screen.Look(screen.Role(rng.IntN(40))).Render(nasty[rng.IntN(len(nasty))]))
		whole(t, c)
		for _, row := range c.Plain() {
			expect.Must(t, !strings.ContainsAny(row, "\x1b\x07\u202e\u200d\u200b"), "the screen holds %q", row)
		}
	}
}
