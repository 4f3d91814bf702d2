package screen_test

import (
	"image/color"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

func TestCellsLookAsAProgramSaysUntilTheyAreDrawnAnew(t *testing.T) {
	orange := uv.Style{Fg: color.RGBA{255, 165, 0, 255}, Attrs: uv.AttrItalic | uv.AttrStrikethrough}
	ground := uv.Style{Bg: ansi.IndexedColor(57), Underline: uv.UnderlineSingle}
	colored := screen.NewTheme("", map[screen.Role]lipgloss.Style{screen.Text: lipgloss.NewStyle().Foreground(lipgloss.Color("#d8dee9"))})
	plain := screen.NewTheme("", nil)
	for _, c := range []struct {
		name  string
		theme *screen.Theme
		draw  func(c *screen.Canvas)
		want  string
	}{
		{"one style", colored, func(c *screen.Canvas) { c.Restyle(screen.Rect{W: 2, H: 1}, orange) }, "\x1b[0;38;2;216;222;233m\x1b[3;9;38;2;255;165;0mab\x1b[0;38;2;216;222;233mcd\x1b[m"},
		{"in a window, cut at its edge", colored, func(c *screen.Canvas) {
			c.Sub(screen.Rect{X: 1, W: 2, H: 1}).Restyle(screen.Rect{X: 1, W: 9, H: 9}, ground)
		}, "\x1b[0;38;2;216;222;233mab\x1b[0;38;2;216;222;233m\x1b[4;48;5;57mc\x1b[0;38;2;216;222;233md\x1b[m"},
		{"painted over", colored, func(c *screen.Canvas) {
			c.Restyle(c.Bounds(), ground)
			c.Paint(c.Bounds(), screen.Text)
		}, "\x1b[0;38;2;216;222;233mabcd\x1b[m"},
		{"drawn over", plain, func(c *screen.Canvas) {
			c.Restyle(c.Bounds(), orange)
			c.Text(1, 0, screen.Text, "xyz")
		}, "\x1b[m\x1b[3;9ma\x1b[mxyz"},
		{"a theme without colours", plain, func(c *screen.Canvas) { c.Restyle(screen.Rect{W: 2, H: 1}, ground) }, "\x1b[m\x1b[7;4mab\x1b[mcd"},
		{"and nothing but a colour", plain, func(c *screen.Canvas) { c.Restyle(screen.Rect{W: 2, H: 1}, uv.Style{Fg: ansi.Red}) }, "\x1b[mab\x1b[mcd"},
		{"no style", plain, func(c *screen.Canvas) { c.Restyle(c.Bounds(), uv.Style{}) }, "abcd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cv := screen.New(4, 1)
			cv.Text(0, 0, screen.Text, "abcd")
			c.draw(cv)
			expect.Is(t, cv.Render(c.theme), c.want)
			buf := uv.NewScreenBuffer(4, 1)
			uv.NewStyledString(c.want).Draw(buf, buf.Bounds())
			expect.Is(t, strings.TrimRight(buf.Line(0).String(), " "), cv.Plain()[0], "the toolkit draws")
			cv.Clear()
			expect.Is(t, strings.Contains(cv.Render(plain), "\x1b"), false, "a cleared picture has a style")
		})
	}
}
