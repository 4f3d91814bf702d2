package fleet

import (
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

// DrawScreen draws a terminal's picture in roles of the theme: what a program
// chose as colours is told apart, and looks like the cockpit.
func DrawScreen(c *screen.Canvas, pic *terminal.Screen) {
	from := top(c.H(), pic)
	for y := 0; y < c.H() && from+y < len(pic.Lines); y++ {
		x := 0
		for _, span := range pic.Lines[from+y] {
			role := roleOf(span.Style)
			text := span.Text
			if span.Style.Attrs&terminal.Conceal != 0 {
				text = ""
			}
			x = drawSpan(c, x, y, span.Cells, role, text)
			if x >= c.W() {
				break
			}
		}
	}
}

// drawSpan draws text in exactly so many cells: one character that takes another
// width here than it took there moves nothing behind it.
func drawSpan(c *screen.Canvas, x, y, cells int, role screen.Role, text string) (next int) {
	next = x + cells
	at := x
	for text != "" && at < next {
		k, rest := term.Next(text)
		if k.Width == 0 || at+k.Width > next {
			break
		}
		at = c.Text(at, y, role, k.Text)
		text = rest
	}
	if at < next {
		c.Fill(screen.Rect{X: at, Y: y, W: next - at, H: 1}, role, ' ')
	}
	return next
}

// roleOf is the role that a style is drawn in.
func roleOf(s terminal.Style) screen.Role {
	fg, bg := hue(s.FG), hue(s.BG)
	if s.Attrs&terminal.Reverse != 0 {
		return screen.Selected
	}
	switch bg {
	case red:
		return screen.Removed
	case green:
		return screen.Added
	case yellow, blue, violet, cyan, gray, white:
		return screen.SelectedOff
	}
	switch fg {
	case red:
		return screen.Bad
	case green:
		return screen.Good
	case yellow:
		return screen.Warn
	case blue, cyan:
		return screen.Accent
	case violet:
		return screen.Busy
	case gray:
		return screen.Dim
	}
	switch {
	case s.Attrs&terminal.Faint != 0:
		return screen.Dim
	case s.Attrs&terminal.Bold != 0:
		return screen.Title
	}
	return screen.Text
}

// hues are what colours are told apart by.
type hues int

const (
	plain hues = iota
	black
	red
	green
	yellow
	blue
	violet
	cyan
	gray
	white
)

// hue is that of a colour: of the 16 by their number, of others by their parts.
func hue(c terminal.Color) hues {
	r, g, b, is := c.RGB()
	if n, palette := c.Index(); palette {
		switch {
		case n == 8:
			return gray
		case n < 16:
			return [...]hues{black, red, green, yellow, blue, violet, cyan, white}[n%8]
		case n >= 232:
			r = 8 + 10*(n-232)
			g, b = r, r
		default:
			r, g, b = level(n-16, 36), level(n-16, 6), level(n-16, 1)
		}
	} else if !is {
		return plain
	}
	high, low := max(r, g, b), min(r, g, b)
	if high-low < 40 { // hardly a colour
		switch {
		case high < 60:
			return black
		case high < 180:
			return gray
		}
		return white
	}
	mid := low + (high-low)/2
	return [...]hues{black, blue, green, cyan, red, violet, yellow, white}[bit(r > mid)<<2|bit(g > mid)<<1|bit(b > mid)]
}

// level is a part of a colour of the cube.
func level(n, step uint8) uint8 {
	v := n / step % 6
	if v == 0 {
		return 0
	}
	return 55 + 40*v
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
