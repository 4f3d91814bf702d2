package logview

import (
	"strings"

	"swarmdeck/ui/term"
)

// scroll moves by rows; reaching the end follows again.
func (v *View) scroll(by int) {
	if !v.up {
		if by > 0 {
			return
		}
		v.up, v.top, v.skip = true, max(v.shown, 1), v.above
	}
	for ; by < 0; by++ {
		switch {
		case v.skip > 0:
			v.skip--
		case v.top > 1:
			v.top--
			v.skip = v.rowsOf(v.top) - 1
		}
	}
	for ; by > 0; by-- {
		if v.end >= v.last() && v.fits() {
			v.up = false
			return
		}
		if v.skip++; v.skip >= v.rowsOf(v.top) {
			v.top, v.skip = v.top+1, 0
		}
	}
}

// fits tells whether everything from the top line on is in the window.
func (v *View) fits() bool {
	rows := -v.skip
	for seq := v.top; seq <= v.last(); seq++ {
		if rows += v.rowsOf(seq); rows > v.h {
			return false
		}
	}
	return true
}

// rowsOf is how many rows a line takes, 1 when it isn't at hand.
func (v *View) rowsOf(seq uint64) int {
	if !v.wrap || v.src == nil {
		return 1
	}
	if got := v.src.Lines(seq, 1); len(got) == 1 && got[0].Seq == seq {
		return rows(&got[0], v.w)
	}
	return 1
}

// rows is how many rows a wrapped line takes in w cells.
func rows(l *Line, w int) int {
	if l.Flow != nil {
		return max(len(l.Flow.Lines(w-headWidth(l))), 1)
	}
	return len(wrap(l.Text, w-headWidth(l)))
}

// wrap breaks a line's text into rows of at most w cells, at its own line
// breaks and between words.
func wrap(text string, w int) []string {
	if len(text) <= w && !strings.Contains(text, "\n") {
		return []string{text}
	}
	text = text[:min(len(text), 8*maxRows*max(w, 1))] // a longer one has more rows than are shown
	all := term.Wrap(text, w)
	return all[:min(len(all), maxRows)]
}

func headWidth(l *Line) int {
	if l.Head == "" {
		return 0
	}
	return min(term.Width(l.Head), maxHead) + 1
}
