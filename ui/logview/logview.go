// Package logview draws a window of a long log: it follows the end, scrolls,
// wraps, and marks what is searched. It asks its source for the lines in sight
// and holds none, so a transcript may be of any length.
package logview

import (
	"swarmdeck/ui/screen"
)

// Line is one line of a log.
type Line struct {
	Seq      uint64 // 1 is the first line of the log
	Head     string // before the text, such as the time; cut at 24 cells
	HeadRole screen.Role
	Text     string
	Role     screen.Role
	Flow     Flow // how the text is laid out when it is wrapped; nil between words
}

// Flow is text that lays itself out in rows of at most so many cells, at least one. It is
// asked often for the same width.
type Flow interface {
	Lines(width int) []screen.Styled
}

// Source is where lines come from. Lines gives consecutive lines, the first of
// them with the least Seq at or after from that is at hand, at most n. It may
// give fewer, or none, when they have to be fetched; Missing tells which.
type Source interface {
	Last() uint64 // the newest Seq, 0 for an empty log
	Lines(from uint64, n int) []Line
}

// View is a window of a log. The zero value shows nothing and follows. It
// belongs to one goroutine.
type View struct {
	Empty string // shown when there are no lines

	src    Source
	up     bool   // scrolled away from the end: doesn't follow
	top    uint64 // the first line in sight while up
	skip   int    // rows of the top line above the window, when wrapped
	wrap   bool
	left   int // cells scrolled to the right, when not wrapped
	query  string
	match  uint64 // the line of the last match
	w, h   int    // of the last Draw
	shown  uint64 // the first line drawn
	above  int    // its rows above the window
	end    uint64 // the last line drawn
	missed uint64 // the first line that was missing at the last Draw
}

const (
	maxHead = 24   // cells
	maxRows = 500  // of one wrapped line
	maxLeft = 8192 // cells
)

// SetSource shows another log from its end, following.
func (v *View) SetSource(src Source) {
	*v = View{Empty: v.Empty, src: src, wrap: v.wrap, query: v.query, w: v.w, h: v.h}
}

// Following tells whether new lines scroll into sight.
func (v *View) Following() bool { return !v.up }

// Wrapped tells whether long lines are wrapped.
func (v *View) Wrapped() bool { return v.wrap }

func (v *View) last() uint64 {
	if v.src == nil {
		return 0
	}
	return v.src.Last()
}

// Do performs a movement by its name in the keymap and tells whether it knows
// it: up, down, left, right, top, bottom, half-up, half-down, page-up,
// page-down, follow, wrap, next-match, prev-match.
func (v *View) Do(action string) bool {
	if by, step := screen.Step(action, v.h); step {
		v.scroll(by)
		return true
	}
	switch action {
	case "top":
		v.up, v.top, v.skip = true, 1, 0
	case "bottom":
		v.up = false
	case "left":
		v.left = max(v.left-8, 0)
	case "right":
		v.left = min(v.left+8, maxLeft)
	case "follow":
		if v.up = !v.up; v.up {
			v.top, v.skip = max(v.shown, 1), v.above
		}
	case "wrap":
		v.wrap, v.left, v.skip = !v.wrap, 0, 0
	case "next-match":
		v.Find(1)
	case "prev-match":
		v.Find(-1)
	default:
		return false
	}
	return true
}

// Missing are the lines that the last Draw wanted and didn't get; n is 0 when
// it got all.
func (v *View) Missing() (from uint64, n int) {
	if v.missed == 0 {
		return 0, 0
	}
	return v.missed, max(v.h, 1)
}
