package screen_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

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
