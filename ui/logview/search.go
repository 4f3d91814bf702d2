package logview

import (
	"slices"
	"strings"

	"swarmdeck/ui/filter"
	"swarmdeck/ui/term"
)

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
