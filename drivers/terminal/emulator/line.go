package emulator

import (
	"image/color"
	"strings"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/core"
	"swarmdeck/engine/terminal"
)

// maxCluster is what is kept of one character with all that joins it, in bytes.
const maxCluster = 32

// lineOf makes a line of cells, without the blanks at its end.
func lineOf(cells uv.Line) terminal.Line {
	n := len(cells)
	for n > 0 && blank(&cells[n-1]) {
		n--
	}
	if n == 0 {
		return nil
	}
	var line terminal.Line
	var text strings.Builder
	var style terminal.Style
	flush := func() {
		if text.Len() > 0 {
			line = append(line, terminal.Span{Text: text.String(), Cells: text.Len(), Style: style})
			text.Reset()
		}
	}
	for x := 0; x < n; x++ {
		c := &cells[x]
		look := styleOf(&c.Style)
		content := c.Content
		if content == "" {
			content = " "
		}
		if len(content) == 1 && content[0] >= 0x20 && content[0] < 0x7f {
			if look != style {
				flush()
				style = look
			}
			text.WriteString(content)
			continue
		}
		flush()
		w := min(max(c.Width, 1), 2)
		if x+w > len(cells) {
			w, content = 1, " "
		}
		if r, size := utf8.DecodeRuneInString(content); r == utf8.RuneError && size <= 1 {
			content = string(utf8.RuneError)
		}
		line = append(line, terminal.Span{Text: core.Cut(content, maxCluster), Cells: w, Style: look})
		style = look
		x += w - 1
	}
	flush()
	return line
}

func blank(c *uv.Cell) bool {
	return (c.Content == "" || c.Content == " ") && c.Style.Bg == nil && c.Style.Underline == ansi.UnderlineNone && c.Style.Attrs&uv.AttrReverse == 0
}

func styleOf(s *uv.Style) (look terminal.Style) {
	if s.IsZero() {
		return look
	}
	look.FG, look.BG = colorOf(s.Fg), colorOf(s.Bg)
	for _, a := range [...]struct {
		bit  uint8
		attr terminal.Attrs
	}{{uv.AttrBold, terminal.Bold}, {uv.AttrFaint, terminal.Faint}, {uv.AttrItalic, terminal.Italic}, {uv.AttrReverse, terminal.Reverse}, {uv.AttrConceal, terminal.Conceal}} {
		if s.Attrs&a.bit != 0 {
			look.Attrs |= a.attr
		}
	}
	if s.Underline != ansi.UnderlineNone {
		look.Attrs |= terminal.Underline
	}
	return look
}

func colorOf(c color.Color) terminal.Color {
	switch c := c.(type) {
	case nil:
		return 0
	case ansi.BasicColor:
		return terminal.Palette(uint8(c))
	case ansi.IndexedColor:
		return terminal.Palette(uint8(c))
	}
	r, g, b, _ := c.RGBA()
	return terminal.RGB(uint8(r>>8), uint8(g>>8), uint8(b>>8))
}

// maxHistory bounds the lines that are kept, in bytes.
const maxHistory = 8 << 20

// history are the lines that have left the screen, the oldest first. The zero
// value is empty.
type history struct {
	lines []terminal.Line
	from  int // lines before it are gone
	bytes int
}

func weight(l terminal.Line) int {
	n := 64
	for i := range l {
		n += 48 + len(l[i].Text)
	}
	return n
}

func (h *history) add(l terminal.Line) {
	h.lines = append(h.lines, l)
	h.bytes += weight(l)
	for h.len() > terminal.MaxBack || h.bytes > maxHistory {
		h.bytes -= weight(h.lines[h.from])
		h.lines[h.from] = nil
		h.from++
	}
	if h.from > terminal.MaxBack {
		h.lines = append([]terminal.Line(nil), h.lines[h.from:]...)
		h.from = 0
	}
}

func (h *history) len() int { return len(h.lines) - h.from }

// line is one of them, by its number from the oldest that there is.
func (h *history) line(n int) terminal.Line { return h.lines[h.from+n] }

func (h *history) clear() { *h = history{} }
