package diff

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Whole is how one file changes, for where a person must see all of it: nothing is
// folded or cut, and lines too long for the screen go on below.
type Whole struct {
	File
	blocks []Block // those of each segment
	width  int     // of what is laid out
	laid   []screen.Styled
}

// Wholes reads a diff that is small enough to be shown whole, and tells whether they show
// all that the text says. A text that is no diff has none.
func Wholes(text string, colors bool) (out []*Whole, all bool) {
	r := strings.NewReader(text)
	d, s := New(r, r.Size()), NewScanner(r, r.Size())
	d.Colors, d.Exact = colors, true
	p, err := s.Next(context.Background(), r.Size()+1)
	if err != nil { // a text in memory has no errors
		return nil, false
	}
	d.Add(p)
	for i := range d.Files {
		w := &Whole{File: d.Files[i]}
		for n := range d.Files[i].segs {
			b, err := d.Load(d.Want(Segment{i, n}))
			if err != nil {
				return nil, false
			}
			w.blocks = append(w.blocks, b)
		}
		out = append(out, w)
	}
	return out, len(out) > 0 && d.Odd == 0 && !d.Cut
}

// Counts are how many lines come in and go out in a diff: +3 -1.
func Counts(text string) string {
	r := strings.NewReader(text)
	p, _ := NewScanner(r, r.Size()).Next(context.Background(), r.Size()+1) // a text in memory has no errors
	var all File
	for i := range p.all {
		all.Added, all.Removed = all.Added+p.all[i].Added, all.Removed+p.all[i].Removed
	}
	return all.Counts()
}

// Lines are the lines of the file, each at most so many cells wide.
func (w *Whole) Lines(width int) []screen.Styled {
	if w.width == width && w.laid != nil {
		return w.laid
	}
	w.width, w.laid = width, nil
	if says := w.says(); says != "" {
		w.laid = append(w.laid, screen.Styled{Text: says, Role: screen.Dim})
	}
	digits := len(strconv.Itoa(w.most()))
	room := max(width-digits-2, 8)
	blank := strings.Repeat(" ", digits+2)
	for i, h := range w.hunks {
		about := Line{}
		about.clean(h.about, true)
		head := screen.Styled{Text: fmt.Sprintf("%s@@ line %d  ", blank[:digits+1], max(h.new, 1)) + about.Text, Role: screen.Accent}
		if i > 0 || h.old > 1 || h.new > 1 || h.about != "" { // else it is the beginning
			w.laid = append(w.laid, head.Break(width)...)
		}
		for _, b := range w.blocks[h.seg : h.seg+h.n] {
			for i := range b.lines {
				l := &b.lines[i]
				number := l.New
				if l.Kind == Removed {
					number = l.Old
				}
				text := l.Styled
				switch {
				case l.Cut:
					text = text.Add(" (it goes on)", screen.Dim)
				case l.NoEnd:
					text = text.Add("  no newline at end", screen.Dim)
				}
				for k, piece := range text.Break(room) {
					lead := blank
					if k == 0 {
						lead = fmt.Sprintf("%*d %c", digits, number, l.Kind)
					}
					w.laid = append(w.laid, piece.Lead(lead, l.Role))
				}
			}
		}
	}
	return w.laid
}

// Width is how many cells its lines take where none is broken.
func (w *Whole) Width() (n int) {
	for _, b := range w.blocks {
		for i := range b.lines {
			n = max(n, term.Width(b.lines[i].Text))
		}
	}
	return n + len(strconv.Itoa(w.most())) + 2
}

// most is the largest line number.
func (w *Whole) most() (n int) {
	for _, b := range w.blocks {
		for i := range b.lines {
			n = max(n, b.lines[i].Old, b.lines[i].New)
		}
	}
	return n
}
