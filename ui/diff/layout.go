package diff

import "slices"

// place is where a row is: in a file its head (hunk -1, line 0) or what is said of it
// below (hunk -1, line 1), in a hunk its head (line -1) or a row of its lines.
type place struct{ file, hunk, line int }

// layout numbers the rows of a document as it is folded.
type layout struct {
	side   bool
	viewed map[string]bool // files that are folded when they come
	shut   []bool          // files that are folded
	start  []int           // the first row of each file, and the number of all
}

// lay numbers the rows from a file on.
func (y *layout) lay(d *Document, from int) {
	for i := len(y.shut); i < len(d.Files); i++ {
		f := &d.Files[i]
		y.shut = append(y.shut, f.Generated || y.viewed[f.Path] || f.Op == Deleted && f.Removed > fullLines)
	}
	y.start = y.start[:min(len(y.start), from)]
	row := 0
	if from > 0 {
		row = y.start[from-1] + y.rows(&d.Files[from-1], from-1)
	}
	for i := from; i < len(d.Files); i++ {
		y.start = append(y.start, row)
		row += y.rows(&d.Files[i], i)
	}
	y.start = append(y.start[:len(d.Files)], row)
}

// rows numbers the rows of a file and counts them.
func (y *layout) rows(f *File, i int) int {
	n := 1
	if y.shut[i] {
		return n
	}
	if f.says() != "" {
		n++
	}
	for k := range f.hunks {
		h := &f.hunks[k]
		h.row = n
		if n++; !h.shut {
			n += f.lines(h, y.side)
		}
	}
	return n
}

// total is how many rows there are.
func (y *layout) total() int {
	if len(y.start) == 0 {
		return 0
	}
	return y.start[len(y.start)-1]
}

// find is the place of a row.
func (y *layout) find(d *Document, row int) (place, bool) {
	if row < 0 || row >= y.total() {
		return place{}, false
	}
	i, ok := slices.BinarySearch(y.start[:len(d.Files)], row)
	if !ok {
		i--
	}
	f := &d.Files[i]
	row -= y.start[i]
	if len(f.hunks) == 0 || y.shut[i] || row < f.hunks[0].row {
		return place{i, -1, row}, true
	}
	k, ok := slices.BinarySearchFunc(f.hunks, row, func(h hunk, row int) int { return h.row - row })
	if !ok {
		k--
	}
	return place{i, k, row - f.hunks[k].row - 1}, true
}

// row is the row of a place, or of what it is folded into.
func (y *layout) row(d *Document, p place) int {
	if p.file >= len(d.Files) {
		return max(y.total()-1, 0)
	}
	f, row := &d.Files[p.file], y.start[p.file]
	switch {
	case y.shut[p.file]:
		return row
	case p.hunk < 0 || p.hunk >= len(f.hunks):
		return row + min(max(p.line, 0), 1)
	}
	h := &f.hunks[p.hunk]
	if h.shut {
		return row + h.row
	}
	return row + h.row + 1 + min(p.line, f.lines(h, y.side)-1)
}
