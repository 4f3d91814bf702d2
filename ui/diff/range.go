package diff

import "fmt"

// Range is a stretch of lines of one file.
type Range struct {
	Path     string
	Old      bool // the lines are counted as before the change
	From, To int  // their numbers, both among them
}

// String is the range as a person writes it: PATH:3, PATH:3-5; with a minus before lines
// that are gone: PATH:-3.
func (r Range) String() string {
	sign := ""
	if r.Old {
		sign = "-"
	}
	if r.From == r.To {
		return fmt.Sprintf("%s:%s%d", r.Path, sign, r.From)
	}
	return fmt.Sprintf("%s:%s%d-%d", r.Path, sign, r.From, r.To)
}

// Range is the marked lines, else the line under the cursor; ok is false where there is
// no line, or it is not loaded. Lines that are there after the change count so.
func (v *View) Range() (r Range, ok bool) {
	at, ok := v.here()
	if !ok || at.hunk < 0 || at.line < 0 {
		return r, false
	}
	from := at
	if v.marked && v.mark.file == at.file && v.mark.hunk >= 0 && v.mark.line >= 0 {
		from = v.mark
	}
	a, okA := v.line(from)
	b, okB := v.line(at)
	if !okA || !okB {
		return r, false
	}
	r.Path = v.doc.Files[at.file].Path
	if a.New > 0 && b.New > 0 {
		r.From, r.To = a.New, b.New
	} else {
		r.Old, r.From, r.To = true, a.Old, b.Old
		if a.Old == 0 || b.Old == 0 { // one is new and one is gone: the new one counts
			n := max(a.New, b.New)
			r.Old, r.From, r.To = false, n, n
		}
	}
	r.From, r.To = min(r.From, r.To), max(r.From, r.To)
	return r, true
}

// line is the line at a place: what is new of two that stand side by side.
func (v *View) line(p place) (*Line, bool) {
	f := &v.doc.Files[p.file]
	if p.hunk >= len(f.hunks) || f.hunks[p.hunk].n == 0 {
		return nil, false
	}
	n, first := f.segment(&f.hunks[p.hunk], p.line, v.lay.side)
	b := v.blocks[Segment{p.file, n}]
	i := p.line - first
	switch {
	case b == nil || i < 0:
		return nil, false
	case !v.lay.side && i < len(b.lines):
		return &b.lines[i], true
	case v.lay.side && i < len(b.pairs):
		return &b.lines[max(b.pairs[i][0], b.pairs[i][1])], true
	}
	return nil, false
}

// Path is the file under the cursor, "" for none.
func (v *View) Path() string {
	path, _ := v.Piece()
	return path
}

// Row is the text of the line under the cursor, for copying.
func (v *View) Row() string {
	p, ok := v.here()
	if !ok || p.hunk < 0 || p.line < 0 {
		return v.Path()
	}
	if l, ok := v.line(p); ok {
		return l.Text
	}
	return ""
}
