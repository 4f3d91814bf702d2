package diff

import (
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
