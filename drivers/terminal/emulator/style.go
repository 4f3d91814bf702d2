package emulator

import (
	"image/color"

	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/terminal"
)

// restyle changes how characters look from now on, as SGR says.
func restyle(pen *terminal.Style, params ansi.Params) {
	if len(params) == 0 {
		*pen = terminal.Style{}
	}
	attrs := [...]terminal.Attrs{
		1: terminal.Bold, 2: terminal.Faint, 3: terminal.Italic, 4: terminal.Underline,
		5: terminal.Blink, 7: terminal.Reverse, 8: terminal.Conceal, 9: terminal.Strike,
	}
	for i := 0; i < len(params); i++ {
		group := params[i:]
		switch n := group[0].Param(0); {
		case n == 0:
			*pen = terminal.Style{}
		case n == 4 && group[0].HasMore() && len(group) > 1 && group[1].Param(1) == 0, n == 24:
			pen.Attrs &^= terminal.Underline
		case n < len(attrs):
			pen.Attrs |= attrs[n]
		case n == 21:
			pen.Attrs |= terminal.Underline
		case n == 22:
			pen.Attrs &^= terminal.Bold | terminal.Faint
		case n > 22 && n-20 < len(attrs):
			pen.Attrs &^= attrs[n-20]
		case n >= 30 && n <= 37:
			pen.FG = terminal.Palette(uint8(n - 30))
		case n == 39:
			pen.FG = 0
		case n >= 40 && n <= 47:
			pen.BG = terminal.Palette(uint8(n - 40))
		case n == 49:
			pen.BG = 0
		case n >= 90 && n <= 97:
			pen.FG = terminal.Palette(uint8(n - 82))
		case n >= 100 && n <= 107:
			pen.BG = terminal.Palette(uint8(n - 92))
		case n == 38, n == 48, n == 58:
			var c color.Color
			i += max(0, ansi.ReadStyleColor(group, &c)-1)
			switch {
			case c != nil && n == 38:
				pen.FG = colorOf(c)
			case c != nil && n == 48:
				pen.BG = colorOf(c)
			}
		}
		for ; params[i].HasMore() && i+1 < len(params); i++ { // what belongs to it
		}
	}
}

func colorOf(c color.Color) terminal.Color {
	if n, is := c.(ansi.IndexedColor); is {
		return terminal.Palette(uint8(n))
	}
	r, g, b, _ := c.RGBA()
	return terminal.RGB(uint8(r>>8), uint8(g>>8), uint8(b>>8))
}
