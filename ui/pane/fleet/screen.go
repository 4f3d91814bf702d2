package fleet

import (
	"image/color"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/terminal"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// top is the first line of a picture that is drawn where it is higher than its
// room of h lines: what is at the cursor is seen.
func top(h int, pic *terminal.Screen) int {
	lines := min(max(len(pic.Lines), pic.Y+1), pic.Rows)
	return max(0, min(lines-h, pic.Y))
}

// DrawScreen draws a terminal's picture as its program wants it to look.
func DrawScreen(c *screen.Canvas, pic *terminal.Screen) {
	from := top(c.H(), pic)
	for y := 0; y < c.H() && from+y < len(pic.Lines); y++ {
		x := 0
		for _, span := range pic.Lines[from+y] {
			text := span.Text
			if span.Style.Attrs&terminal.Conceal != 0 {
				text = ""
			}
			next := drawSpan(c, x, y, span.Cells, text)
			c.Restyle(screen.Rect{X: x, Y: y, W: span.Cells, H: 1}, styleOf(span.Style))
			if x = next; x >= c.W() {
				break
			}
		}
	}
}

// drawSpan draws text in exactly so many cells: one character that takes another
// width here than it took there moves nothing behind it.
func drawSpan(c *screen.Canvas, x, y, cells int, text string) (next int) {
	next = x + cells
	at := x
	for text != "" && at < next {
		k, rest := term.Next(text)
		if k.Width == 0 || at+k.Width > next {
			break
		}
		at = c.Text(at, y, screen.Text, k.Text)
		text = rest
	}
	if at < next {
		c.Fill(screen.Rect{X: at, Y: y, W: next - at, H: 1}, screen.Text, ' ')
	}
	return next
}

// styleOf is a style as the toolkit has it.
func styleOf(s terminal.Style) uv.Style {
	own := uv.Style{Fg: colorOf(s.FG), Bg: colorOf(s.BG)}
	for i, attr := range [...]uint8{uv.AttrBold, uv.AttrFaint, uv.AttrItalic, 0, uv.AttrReverse, 0, uv.AttrBlink, uv.AttrStrikethrough} {
		if s.Attrs&(1<<i) != 0 {
			own.Attrs |= attr
		}
	}
	if s.Attrs&terminal.Underline != 0 {
		own.Underline = uv.UnderlineSingle
	}
	return own
}

func colorOf(c terminal.Color) color.Color {
	n, indexed := c.Index()
	r, g, b, direct := c.RGB()
	switch {
	case indexed && n < 16:
		return ansi.BasicColor(n)
	case indexed:
		return ansi.IndexedColor(n)
	case direct:
		return color.RGBA{r, g, b, 0xff}
	}
	return nil
}
