// Package logview draws a window of a long log: it follows the end, scrolls,
// wraps, and marks what is searched. It asks its source for the lines in sight
// and holds none, so a transcript may be of any length.
package logview

import (
	"slices"
	"strings"

	"swarmdeck/ui/filter"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
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

// Bounds of a search.
const (
	reach    = 5000 // lines that it looks at
	readOnce = 200
)

// Search sets what is searched, whatever its case; empty ends the search. It
// tells whether the line of the next match, from the window on, was found.
func (v *View) Search(text string) bool {
	v.query = strings.ToLower(term.Clean(text))
	v.match = 0
	return v.query == "" || v.Find(1)
}

// Query is what is searched.
func (v *View) Query() string { return v.query }

// Find scrolls to the next line that matches, down or up, and tells whether
// there is one among the 5000 lines that way that are at hand.
func (v *View) Find(dir int) bool {
	last := v.last()
	if v.query == "" || last == 0 {
		return false
	}
	seq := v.match
	if seq == 0 {
		if seq = max(v.shown, 1); dir > 0 {
			seq--
		}
	}
	for looked := 0; looked < reach; {
		var got []Line
		if dir > 0 {
			got = v.src.Lines(seq+1, readOnce)
		} else {
			got = slices.Clone(v.before(max(seq, readOnce+1)-readOnce, seq)) // the source's own
			slices.Reverse(got)
		}
		for i := range got {
			if v.hit(&got[i]) {
				return true
			}
			seq = got[i].Seq
		}
		if looked += len(got); len(got) == 0 {
			return false
		}
	}
	return false
}

// before are the lines at hand from from up to, but not with, seq.
func (v *View) before(from, seq uint64) []Line {
	if seq <= from {
		return nil
	}
	got := v.src.Lines(from, int(seq-from))
	for len(got) > 0 && got[len(got)-1].Seq >= seq {
		got = got[:len(got)-1]
	}
	return got
}

// hit tells whether l matches and brings it in sight.
func (v *View) hit(l *Line) bool {
	if _, _, ok := filter.Index(term.Clean(l.Text), v.query); !ok {
		return false
	}
	v.match = l.Seq
	if !v.up || l.Seq < v.top || l.Seq > v.end {
		v.up, v.skip = true, 0
		v.top = max(1, l.Seq-min(l.Seq, uint64(max(v.h/2, 0))))
	}
	return true
}
