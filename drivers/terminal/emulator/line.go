package emulator

import (
	"swarmdeck/engine/terminal"
)

// maxCluster is what is kept of one character with all that joins it, in bytes.
const maxCluster = 32

// line is what is to be seen of a row, without the blanks at its end. It is made
// once for each change of the row, and never changed.
func (e *Emulator) line(l *row) terminal.Line {
	if !l.drawn {
		l.line, l.drawn = e.lineOf(l.cells), true
	}
	return l.line
}

func (e *Emulator) lineOf(cells []cell) terminal.Line {
	n := len(cells)
	for n > 0 && blank(&cells[n-1]) {
		n--
	}
	var line terminal.Line
	var plain [terminal.MaxCols]byte
	for x := 0; x < n; {
		c := cells[x]
		k := 0
		for ; x+k < n && cells[x+k].r >= 0 && cells[x+k].r < 0x7f && !cells[x+k].tail && cells[x+k].style == c.style; k++ {
			if plain[k] = byte(cells[x+k].r); plain[k] == 0 {
				plain[k] = ' '
			}
		}
		switch {
		case k > 0:
			line = append(line, terminal.Span{Text: string(plain[:k]), Cells: k, Style: c.style})
			x += k
		case c.wide:
			line = append(line, terminal.Span{Text: e.text(c), Cells: 2, Style: c.style})
			x += 2
		default:
			line = append(line, terminal.Span{Text: e.text(c), Cells: 1, Style: c.style})
			x++
		}
	}
	return line
}

func blank(c *cell) bool {
	return (c.r == 0 || c.r == ' ') && !c.tail && c.style.BG == 0 && c.style.Attrs&(terminal.Underline|terminal.Reverse) == 0
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
