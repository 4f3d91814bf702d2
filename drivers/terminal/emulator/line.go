package emulator

import (
	"image/color"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/terminal"
)

// cell is one place of a line. The zero value is blank.
type cell struct {
	r     rune    // its character, or the first of it; 0 for none
	all   *string // of one that has several parts
	wide  bool    // takes the next place too
	tail  bool    // is the second place of a wide one
	style terminal.Style
}

// plain reports whether it is one of ASCII, or nothing.
func (c *cell) plain() bool { return c.r < 0x7f && c.all == nil && !c.tail }

func (c *cell) blank() bool {
	return (c.r == 0 || c.r == ' ' && c.all == nil) && !c.tail && c.style.BG == 0 && c.style.Attrs&(terminal.Underline|terminal.Reverse|terminal.Strike) == 0
}

// split parts a wide character that stands on both sides of a place.
func split(cells []cell, x int) {
	if x > 0 && x < len(cells) && cells[x].tail {
		cells[x-1] = cell{style: cells[x-1].style}
		cells[x] = cell{style: cells[x].style}
	}
}

func wipe(cells []cell, ground terminal.Color) {
	clear(cells)
	if ground != 0 {
		for i := range cells {
			cells[i].style.BG = ground
		}
	}
}

// row is one line of the screen.
type row struct {
	cells []cell
	line  terminal.Line // what is to be seen of it, while drawn
	drawn bool
}

// seen is what is to be seen of it, without the blanks at its end. It is made once
// for each change, and never changed.
func (l *row) seen() terminal.Line {
	if l.drawn {
		return l.line
	}
	l.line, l.drawn = nil, true
	cells := l.cells
	for len(cells) > 0 && cells[len(cells)-1].blank() {
		cells = cells[:len(cells)-1]
	}
	for len(cells) > 0 {
		c, n := &cells[0], 1
		for c.plain() && n < len(cells) && cells[n].plain() && cells[n].style == c.style {
			n++
		}
		if c.wide {
			n = 2
		}
		l.line = append(l.line, terminal.Span{Text: textOf(cells[:n]), Cells: n, Style: c.style})
		cells = cells[n:]
	}
	return l.line
}

// textOf is the text of places.
func textOf(cells []cell) string {
	text := make([]byte, 0, 128)
	for i := range cells {
		switch c := &cells[i]; {
		case c.tail:
		case c.all != nil:
			text = append(text, *c.all...)
		default:
			text = utf8.AppendRune(text, max(c.r, ' '))
		}
	}
	return string(text)
}

// maxHistory bounds the lines that have left the screen, in bytes.
const maxHistory = 8 << 20

func weight(l terminal.Line) int {
	n := 64
	for i := range l {
		n += 48 + len(l[i].Text)
	}
	return n
}

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
