package diff

import (
	"fmt"

	"swarmdeck/ui/screen"
)

// Remark is what somebody said of lines, or of a file.
type Remark struct {
	From, To int    // lines, both among them; 0 is of the file
	Old      bool   // they are counted as before the change
	Text     string // at the end of the line
}

// on tells whether a note is about a line.
func (n *Remark) on(l *Line) bool {
	at := l.New
	if n.Old {
		at = l.Old
	}
	return at > 0 && n.From <= at && at <= max(n.From, n.To) && (!n.Old || l.Kind == Removed)
}

// Piece is the hunk under the cursor, counted from 1 in its file; on a file's own rows
// hunk is 0, and where there is no file path is "".
func (v *View) Piece() (path string, hunk int) {
	p, ok := v.here()
	if !ok {
		return "", 0
	}
	return v.doc.Files[p.file].Path, p.hunk + 1
}

// Here are the numbers of the notes of a file that are about the line under the cursor,
// or about the file on its own rows.
func (v *View) Here() (path string, notes []int) {
	path, hunk := v.Piece()
	var l *Line
	if hunk > 0 {
		p, _ := v.here()
		if p.line < 0 {
			return path, nil
		}
		var ok bool
		if l, ok = v.line(p); !ok {
			return path, nil
		}
	}
	for i := range v.Notes[path] {
		n := &v.Notes[path][i]
		if l == nil && n.From == 0 || l != nil && n.on(l) {
			notes = append(notes, i)
		}
	}
	return path, notes
}

// noted draws the notes that begin at a line behind its text. A range says at its last
// line what it is about.
func (v *View) noted(c *screen.Canvas, x int, f *File, l *Line) {
	all := v.Notes[f.Path]
	for i := range all {
		n := &all[i]
		switch end := (&Remark{From: max(n.From, n.To), Old: n.Old}); {
		case n.From == 0 || !n.on(l):
		case end.on(l):
			x = max(min(x+2, c.W()-24), 0)
			x = c.Text(x, 0, screen.Warn, v.sign(c)+n.Text)
		case x+2 < c.W():
			x = c.Text(x+2, 0, screen.Warn, v.sign(c))
		}
	}
}

func (v *View) sign(c *screen.Canvas) string {
	if c.Glyphs().Ellipsis == "~" {
		return "< "
	}
	return "◂ "
}

// tag is what is said of a file, 0, or of one of its hunks.
func (v *View) tag(f *File, hunk int) string {
	if v.Tag == nil {
		return ""
	}
	if text := v.Tag(f.Path, hunk); text != "" {
		return "  " + text
	}
	return ""
}

// See marks files as viewed that have just become known to be; they fold.
func (v *View) See(is func(path string) bool) {
	if v.doc == nil {
		return
	}
	v.relay(func() {
		for i := range v.doc.Files {
			if path := v.doc.Files[i].Path; is(path) && !v.Viewed[path] {
				v.Viewed[path], v.lay.shut[i] = true, true
			}
		}
	})
}

// Listed tells whether the files are listed, and the list has the keys.
func (v *View) Listed() bool { return v.list }

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
