package emulator

import (
	"image/color"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/terminal"
)

// restyle changes how characters look from now on, as SGR says.
func (c *cursor) restyle(params ansi.Params) {
	uv.ReadStyle(params, &c.sgr)
	c.pen = terminal.Style{FG: colorOf(c.sgr.Fg), BG: colorOf(c.sgr.Bg)}
	for i, attr := range [...]uint8{uv.AttrBold, uv.AttrFaint, uv.AttrItalic, 0, uv.AttrReverse, uv.AttrConceal, uv.AttrBlink, uv.AttrStrikethrough} {
		if c.sgr.Attrs&attr != 0 {
			c.pen.Attrs |= 1 << i
		}
	}
	if c.sgr.Underline != uv.UnderlineNone {
		c.pen.Attrs |= terminal.Underline
	}
}

func colorOf(c color.Color) terminal.Color {
	switch c := c.(type) {
	case nil:
		return 0
	case ansi.BasicColor:
		return terminal.Palette(uint8(c))
	case ansi.IndexedColor:
		return terminal.Palette(uint8(c))
	default:
		r, g, b, _ := c.RGBA()
		return terminal.RGB(uint8(r>>8), uint8(g>>8), uint8(b>>8))
	}
}
