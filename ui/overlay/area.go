package overlay

import (
	"fmt"
	"strings"
	"unicode/utf16"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Bounds of the text of an editor.
const (
	maxArea  = 1 << 20 // bytes taken in at once
	maxLines = 20_000
)

// area edits lines of characters each of which is shown as itself.
type area struct {
	lines    [][]rune // at least one once set
	row, col int
	top      int // the first line in sight
	page     int
}

// showable turns text into lines: tabs to two spaces, what can't be shown to
// \u escapes.
func showable(s string) [][]rune { return linesOf(s, "  ") }

// linesOf is showable with tabs as something else.
func linesOf(s, tab string) [][]rune {
	var out [][]rune
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(clip(s, maxArea))
	for line := range strings.SplitSeq(strings.ToValidUTF8(s, string(term.Replacement)), "\n") {
		runes := make([]rune, 0, len(line))
		for _, r := range line {
			switch {
			case r >= 0x20 && r < 0x7f:
				runes = append(runes, r)
			case r == '\t':
				runes = append(runes, []rune(tab)...)
			case term.Clean(string(r)) == string(r):
				runes = append(runes, r)
			case r > 0xFFFF:
				hi, lo := utf16.EncodeRune(r)
				runes = append(runes, []rune(fmt.Sprintf(`\u%04x\u%04x`, hi, lo))...)
			default:
				runes = append(runes, []rune(fmt.Sprintf(`\u%04x`, r))...)
			}
		}
		if out = append(out, runes); len(out) == maxLines {
			break
		}
	}
	return out
}

func (a *area) set(s string) {
	a.lines = showable(s)
	a.row, a.col, a.top = 0, 0, 0
}

func (a *area) value() string {
	var b strings.Builder
	for i, l := range a.lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(string(l))
	}
	return b.String()
}

// fix brings the cursor into the text.
func (a *area) fix() {
	if len(a.lines) == 0 {
		a.lines = [][]rune{{}}
	}
	a.row = min(max(a.row, 0), len(a.lines)-1)
	a.col = min(max(a.col, 0), len(a.lines[a.row]))
}

// insert types s at the cursor.
func (a *area) insert(s string) {
	a.fix()
	add := showable(s)
	if len(a.lines)+len(add) > maxLines {
		return
	}
	line := a.lines[a.row]
	tail := append([]rune(nil), line[a.col:]...)
	add[0] = append(line[:a.col:a.col], add[0]...)
	last := len(add) - 1
	col := len(add[last])
	add[last] = append(add[last][:col:col], tail...)
	lines := make([][]rune, 0, len(a.lines)+last)
	lines = append(append(append(lines, a.lines[:a.row]...), add...), a.lines[a.row+1:]...)
	a.lines, a.row, a.col = lines, a.row+last, col
}

// key edits and moves; it tells whether the text may have changed.
func (a *area) key(k tea.KeyPressMsg) bool {
	a.fix()
	line := a.lines[a.row]
	switch k.String() {
	case "left":
		if a.col > 0 {
			a.col--
		} else if a.row > 0 {
			a.row, a.col = a.row-1, len(a.lines[a.row-1])
		}
	case "right":
		if a.col < len(line) {
			a.col++
		} else if a.row < len(a.lines)-1 {
			a.row, a.col = a.row+1, 0
		}
	case "up", "ctrl+p":
		a.row--
	case "down", "ctrl+n":
		a.row++
	case "pgup":
		a.row -= max(a.page, 1)
	case "pgdown":
		a.row += max(a.page, 1)
	case "home", "ctrl+a":
		a.col = 0
	case "end", "ctrl+e":
		a.col = len(line)
	case "ctrl+home":
		a.row, a.col = 0, 0
	case "ctrl+end":
		a.row = len(a.lines) - 1
		a.col = len(a.lines[a.row])
	default:
		return a.change(k, line)
	}
	a.fix()
	return false
}

func (a *area) change(k tea.KeyPressMsg, line []rune) bool {
	switch k.String() {
	case "enter":
		indent := 0
		for indent < a.col && line[indent] == ' ' {
			indent++
		}
		a.insert("\n" + strings.Repeat(" ", indent))
	case "tab":
		a.insert("  ")
	case "backspace", "ctrl+h":
		if a.col > 0 {
			a.lines[a.row] = append(line[:a.col-1:a.col-1], line[a.col:]...)
			a.col--
		} else if a.row > 0 {
			a.join(a.row - 1)
		}
	case "delete", "ctrl+d":
		if a.col < len(line) {
			a.lines[a.row] = append(line[:a.col:a.col], line[a.col+1:]...)
		} else if a.row < len(a.lines)-1 {
			a.join(a.row)
		}
	case "ctrl+u":
		a.lines[a.row], a.col = append([]rune(nil), line[a.col:]...), 0
	case "ctrl+k":
		a.lines[a.row] = line[:a.col:a.col]
	default:
		if k.Text == "" {
			return false
		}
		a.insert(k.Text)
	}
	return true
}

// join appends line row+1 to line row and puts the cursor between.
func (a *area) join(row int) {
	col := len(a.lines[row])
	a.lines[row] = append(a.lines[row][:col:col], a.lines[row+1]...)
	a.lines = append(a.lines[:row+1:row+1], a.lines[row+2:]...)
	a.row, a.col = row, col
}

// draw draws the lines in sight and shows the cursor. Lines start at their
// beginning; only the cursor's line scrolls sideways, by half a width. A sign
// stands where a line goes on out of sight.
func (a *area) draw(c *screen.Canvas, r screen.Rect) {
	if r.Empty() {
		return
	}
	a.fix()
	a.page = r.H
	a.top = screen.Window(a.top, a.row, r.H, len(a.lines))
	sub := c.Sub(r)
	for i := 0; i < r.H && a.top+i < len(a.lines); i++ {
		line, left := a.lines[a.top+i], 0
		if a.top+i == a.row {
			x := cells(line[:a.col])
			left = shift(x, r.W-1)
			c.SetCursor(r.X+x-left, r.Y+i)
		}
		from, at := 0, 0
		for from < len(line) && at < left {
			at += cells(line[from : from+1])
			from++
		}
		end := min(len(line), from+r.W+1)
		sub.Text(at-left, i, screen.Input, string(line[from:end]))
		sub.Paint(screen.Rect{X: 0, Y: i, W: r.W, H: 1}, screen.Input)
		if at-left+cells(line[from:end]) > r.W {
			sub.Text(r.W-1, i, screen.Dim, c.Glyphs().Ellipsis)
		}
		if left > 0 {
			sub.Text(0, i, screen.Dim, c.Glyphs().Ellipsis)
		}
	}
}

// shift is how many cells of a line are out of sight at the left so that cell
// x is within the w cells in sight, with some of the line on both sides.
func shift(x, w int) int {
	half := max(w/2, 1)
	if x < w {
		return 0
	}
	return (x/half - 1) * half
}

// cells is the width of characters each of which stands alone.
func cells(rs []rune) int {
	w := 0
	for _, r := range rs {
		if r < 0x7f {
			w++
		} else {
			w += term.Width(string(r))
		}
	}
	return w
}
