// Package diff shows unified diffs, whoever wrote them and however long they are: of
// git, of diff -u, or a file's name above its hunks.
//
// A Scanner reads a stored diff once and finds its files, hunks and where their lines
// are, some bytes at a time. A Document keeps that index, a thousandth of the text, and
// reads the lines of a window on demand, with their numbers, the words that differ and
// the colours of their language. A View scrolls, folds and draws it. Everything in a
// diff is bounded and made harmless; nothing here runs a program.
package diff

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// Op is what becomes of a file.
type Op byte

// What becomes of files.
const (
	Modified Op = iota
	Created
	Deleted
	Renamed
	Copied
)

// String is the word for it, "" for a file that is only modified.
func (o Op) String() string {
	return [...]string{"", "new", "deleted", "renamed", "copied"}[min(o, Copied)]
}

// File is what a diff says of one file.
type File struct {
	Path             string // after the change, before it when it is deleted
	Old              string // before, where it had another name
	Op               Op
	OldMode, NewMode string // where they are told: 100644
	Binary           bool
	LFS              bool  // it is a pointer of git LFS
	OldSize, NewSize int64 // bytes of a binary or of an object of LFS, -1 where that is not known
	Added, Removed   int   // lines
	Generated        bool  // by a program, or locked by one: folded at first
	hunks            []hunk
	segs             []segment
}

// hunk is a stretch of lines of a file.
type hunk struct {
	old, new int    // the numbers of its first lines
	about    string // behind the numbers, such as the function it is in
	seg, n   int    // its segments in the file
	on       bool   // it goes on with the newest hunk of the part before
	shut     bool   // folded
	row      int    // of its head in the file, as it is laid out
}

// segment is some lines of a hunk that are read together. Lines that are shown side by
// side are in one.
type segment struct {
	off          int64
	size         int64 // bytes, with the line breaks
	line, pair   int   // rows of the hunk before it, one below the other and side by side
	lines, pairs int
	old, new     int // the numbers of its first lines
}

// Part is what a Scanner found in a stretch of a diff.
type Part struct {
	Done bool  // nothing comes after
	Cut  bool  // more files or hunks than are kept: the rest is left out
	Read int64 // bytes of the diff so far
	Odd  int   // lines of which nothing is shown
	on   bool  // the first file goes on with the newest of the part before
	all  []File
}

// Document is a diff as far as it has been scanned. It belongs to one goroutine; Load
// may be called on any.
type Document struct {
	Files          []File
	Added, Removed int // lines of all files
	Done           bool
	Cut            bool  // there are more files or hunks than are kept
	Read           int64 // bytes that have been scanned
	Odd            int   // lines outside of hunks of which nothing is shown
	Size           int64
	// Colors has Load find the colours of each file's language.
	Colors bool
	// Exact has Load tell tabs from spaces, and every carriage return: for what a
	// person must judge.
	Exact bool
	r     io.ReaderAt
}

// New makes a document of size bytes of which nothing is known yet.
func New(r io.ReaderAt, size int64) *Document { return &Document{r: r, Size: size} }

// Add takes what the scanner of the same diff found next.
func (d *Document) Add(p Part) {
	d.Done, d.Cut, d.Read = p.Done, p.Cut, p.Read
	d.Odd += p.Odd
	for i := range p.all {
		d.Added, d.Removed = d.Added+p.all[i].Added, d.Removed+p.all[i].Removed
	}
	if p.on && len(d.Files) > 0 && len(p.all) > 0 {
		d.Files[len(d.Files)-1].extend(&p.all[0])
		p.all = p.all[1:]
	}
	d.Files = append(d.Files, p.all...)
}

// extend takes what was found of the same file later.
func (f *File) extend(more *File) {
	hunks, segs, base := f.hunks, f.segs, len(f.segs)
	added, removed := f.Added+more.Added, f.Removed+more.Removed
	generated := f.Generated || more.Generated
	next := more.hunks
	*f = *more
	f.Added, f.Removed, f.Generated = added, removed, generated
	if len(next) > 0 && next[0].on && len(hunks) > 0 {
		hunks[len(hunks)-1].n += next[0].n
		next = next[1:]
	}
	for i := range next {
		next[i].seg += base
	}
	f.hunks, f.segs = append(hunks, next...), append(segs, more.segs...)
}

// lines are how many rows a hunk's lines take.
func (f *File) lines(h *hunk, side bool) int {
	if h.n == 0 {
		return 0
	}
	first, n := f.segs[h.seg+h.n-1].rows(side)
	return first + n
}

// rows are the rows of the segment: how many of its hunk are before it, and how many it has.
func (s *segment) rows(side bool) (first, n int) {
	if side {
		return s.pair, s.pairs
	}
	return s.line, s.lines
}

// Segment names lines that are loaded together, by the numbers of their file and of the
// segment in it.
type Segment struct{ File, N int }

// Block is the lines of a segment.
type Block struct {
	Segment
	lines []Line
	pairs [][2]int // lines that are side by side, -1 for none
}

// maxSegment bounds what is read of one segment, in bytes: only its last line can be
// longer, and is cut.
const maxSegment = 512 << 10

// Want is what Load needs of a segment; it is taken on the document's goroutine.
type Want struct {
	Segment
	seg    segment
	path   string
	whole  bool // all of its lines are new, or gone
	colors bool
	exact  bool
}

// Want says what to load of a segment.
func (d *Document) Want(s Segment) Want {
	f := &d.Files[s.File]
	return Want{s, f.segs[s.N], f.Path, f.Op == Created || f.Op == Deleted, d.Colors, d.Exact}
}

// Load reads the lines of a segment.
func (d *Document) Load(w Want) (Block, error) {
	data := make([]byte, min(w.seg.size, maxSegment))
	n, err := d.r.ReadAt(data, w.seg.off)
	if err != nil && !(errors.Is(err, io.EOF) && n == len(data)) {
		return Block{}, fmt.Errorf("read %d bytes of the diff at %d: %w", len(data), w.seg.off, err)
	}
	b := Block{Segment: w.Segment, lines: w.seg.parse(data, w.exact)}
	b.pairs = pair(b.lines)
	mark(b.lines, b.pairs)
	if w.colors {
		paint(b.lines, w.path, w.whole)
	}
	for i := range b.lines {
		b.lines[i].settle()
	}
	return b, nil
}

// segment is the segment of a hunk that has its row number at.
func (f *File) segment(h *hunk, at int, side bool) (n, first int) {
	segs := f.segs[h.seg : h.seg+h.n]
	i, ok := slices.BinarySearchFunc(segs, at, func(s segment, at int) int {
		first, _ := s.rows(side)
		return first - at
	})
	if !ok {
		i--
	}
	i = max(i, 0)
	first, _ = segs[i].rows(side)
	return h.seg + i, first
}
