package diff

import (
	"context"
	"strings"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// maxSearched bounds the segments that one search reads.
const maxSearched = 200_000

// Search is a search for the next line that holds a text, or for the one before.
type Search struct {
	doc   *Document
	text  string
	back  bool
	wants []Want
	after int // rows of the first segment that are passed over, or of which no more are looked at
}

// Find sets what is looked for, "" for nothing.
func (v *View) Find(text string) { v.find = strings.ToLower(text) }

// Search prepares a search from the cursor on, here with its own line; ok is false where nothing is looked for.
// Folded lines are found too.
func (v *View) Search(back, here bool) (s Search, ok bool) {
	if v.doc == nil || v.find == "" || len(v.doc.Files) == 0 {
		return s, false
	}
	s = Search{doc: v.doc, text: v.find, back: back, after: -1}
	at, _ := v.here()
	file, seg := at.file, 0
	f := &v.doc.Files[file]
	switch {
	case at.hunk >= 0 && at.line >= 0:
		p := at
		if v.lay.side {
			p = v.across(at, true)
		}
		n, first := f.segment(&f.hunks[at.hunk], p.line, false)
		if seg, s.after = n, p.line-first; here {
			s.after--
		}
	case at.hunk >= 0:
		if seg = f.hunks[at.hunk].seg; back {
			seg--
		}
	case back:
		seg = -1
	}
	for file >= 0 && file < len(v.doc.Files) && len(s.wants) < maxSearched {
		if seg < 0 || seg >= len(v.doc.Files[file].segs) {
			if back {
				if file--; file >= 0 {
					seg = len(v.doc.Files[file].segs) - 1
				}
			} else {
				file, seg = file+1, 0
			}
			continue
		}
		w := v.doc.Want(Segment{file, seg})
		w.colors = false
		s.wants = append(s.wants, w)
		if back {
			seg--
		} else {
			seg++
		}
	}
	return s, true
}

// Run reads the lines and finds the next that holds the text. It may be called on any
// goroutine.
func (s *Search) Run(ctx context.Context) (at Segment, line int, found bool, err error) {
	for i, w := range s.wants {
		if err := ctx.Err(); err != nil {
			return at, 0, false, err
		}
		b, err := s.doc.Load(w)
		if err != nil {
			return at, 0, false, err
		}
		for k := range b.lines {
			if s.back {
				k = len(b.lines) - 1 - k
			}
			if i == 0 && s.after >= 0 && (!s.back && k <= s.after || s.back && k >= s.after) {
				continue
			}
			if strings.Contains(strings.ToLower(b.lines[k].Text), s.text) {
				return w.Segment, k, true, nil
			}
		}
	}
	return at, 0, false, nil
}

// Found puts the cursor on a line that a search found, and opens what it is folded in.
func (v *View) Found(at Segment, line int) {
	if v.doc == nil || at.File >= len(v.doc.Files) {
		return
	}
	f := &v.doc.Files[at.File]
	for k := range f.hunks {
		h := &f.hunks[k]
		if at.N < h.seg || at.N >= h.seg+h.n {
			continue
		}
		v.relay(func() { v.lay.shut[at.File], h.shut = false, false })
		p := place{at.File, k, f.segs[at.N].line + line}
		if v.lay.side {
			p = v.across(p, false)
		}
		v.jump(p)
		return
	}
}

// matches has what is looked for stand out in a line that was drawn at x.
func (v *View) matches(c *screen.Canvas, x int, text string) {
	if v.find == "" {
		return
	}
	low, from := strings.ToLower(text), 0
	if len(low) != len(text) { // bytes would not be the same
		return
	}
	for range 100 {
		i := strings.Index(low[from:], v.find)
		if i < 0 || x >= c.W() {
			return
		}
		x += term.Width(text[from : from+i])
		w := term.Width(text[from+i : from+i+len(v.find)])
		c.Paint(screen.Rect{X: max(x, 0), Y: 0, W: w + min(x, 0), H: 1}, screen.Match)
		x, from = x+w, from+i+len(v.find)
	}
}
