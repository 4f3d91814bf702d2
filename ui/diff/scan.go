package diff

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds of a scan.
const (
	scanBuffer = 256 << 10
	maxHead    = 8 << 10  // bytes of a line that says something of a file
	maxEntries = 2 << 20  // files, hunks and segments
	fullLines  = 256      // of a segment that may end
	mostLines  = 1024     // of a segment that must
	fullBytes  = 64 << 10 // the same in bytes
	mostBytes  = 256 << 10
	maxPointed = 100 // bytes of a line of a pointer that is looked at
	lookedAt   = 20  // lines of a file in which a mark of generated code is looked for
)

// Scanner finds the files and hunks of a diff. It belongs to one goroutine.
type Scanner struct {
	in   *bufio.Reader
	off  int64 // of the line that comes next
	long []byte

	held  []byte // a line that was read and belongs to the next part
	heldN int64

	part    Part
	file    File // what is known of the newest, without its hunks
	begun   bool // there is one
	header  bool // above the first hunk of the file that git names
	packed  bool // in a binary patch
	sizes   int  // literal sizes that were read of it
	name    string
	oldLeft int // lines that the hunk still has
	newLeft int
	seg     segment
	open    bool // there is a segment
	old     int  // numbers of the lines that come next
	new     int
	line    int // rows of the hunk so far
	pair    int
	del     int // lines of the block of changes so far
	add     int
	looked  int
	entries int
}

// NewScanner reads a diff of size bytes from its start.
func NewScanner(r io.ReaderAt, size int64) *Scanner {
	return &Scanner{in: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), scanBuffer)}
}

// Next scans on for about most bytes.
func (s *Scanner) Next(ctx context.Context, most int64) (Part, error) {
	s.part = Part{}
	if s.begun {
		s.part.on = true
		s.part.all = append(s.part.all, s.file)
	}
	end := s.off + max(most, 1)
	for s.entries < maxEntries {
		head, n, err := s.next()
		if errors.Is(err, io.EOF) && n == 0 {
			s.close()
			return s.give(true), nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return Part{}, fmt.Errorf("scan the diff at %d: %w", s.off, err)
		}
		if s.ends(head) {
			s.close()
		}
		if s.off >= end && !s.open {
			if err := ctx.Err(); err != nil {
				return Part{}, err
			}
			s.held, s.heldN = append(s.held[:0], head...), n
			return s.give(false), nil
		}
		s.take(head, n)
		s.off += n
	}
	s.close()
	s.part.Cut = true
	return s.give(true), nil
}

// give ends a part.
func (s *Scanner) give(done bool) Part {
	s.part.Done, s.part.Read = done, s.off
	if f := s.current(); f != nil {
		s.file = *f
		s.file.hunks, s.file.segs, s.file.Added, s.file.Removed = nil, nil, 0, 0
	}
	return s.part
}

func (s *Scanner) current() *File {
	if len(s.part.all) == 0 {
		return nil
	}
	return &s.part.all[len(s.part.all)-1]
}

// next is the next line without its break, cut at maxHead bytes where it is longer than
// the buffer, and how many bytes it has.
func (s *Scanner) next() (head []byte, n int64, err error) {
	if s.heldN > 0 {
		head, n = s.held, s.heldN
		s.heldN = 0
		return head, n, nil
	}
	head, err = s.in.ReadSlice('\n')
	n = int64(len(head))
	if errors.Is(err, bufio.ErrBufferFull) {
		s.long = append(s.long[:0], head[:maxHead]...)
		head = s.long
		for errors.Is(err, bufio.ErrBufferFull) {
			var more []byte
			more, err = s.in.ReadSlice('\n')
			n += int64(len(more))
		}
	}
	return bytes.TrimSuffix(head, []byte{'\n'}), n, err
}

// ends reports that the segment ends before a line.
func (s *Scanner) ends(line []byte) bool {
	if !s.open || len(line) > 0 && Kind(line[0]) == Note {
		return false
	}
	kind, ok := kindOf(line)
	if s.oldLeft+s.newLeft == 0 || !ok || s.seg.lines >= mostLines || s.seg.size >= mostBytes {
		return true
	}
	if s.seg.lines < fullLines && s.seg.size < fullBytes {
		return false
	}
	switch kind { // what stands side by side stays together
	case Removed:
		return s.add > 0 || s.del == 0
	case Added:
		return s.add >= s.del
	}
	return true
}

// kindOf is what a line within a hunk is; ok is false for one that can't be of it: the
// hunk was cut off.
func kindOf(line []byte) (k Kind, ok bool) {
	if len(line) == 0 {
		return Context, true
	}
	switch k = Kind(line[0]); k {
	case Added, Removed, Context, Note:
		return k, true
	}
	return Context, !bytes.HasPrefix(line, []byte("@@ -")) && !bytes.HasPrefix(line, []byte("diff --git "))
}

// close ends the segment.
func (s *Scanner) close() {
	if !s.open {
		return
	}
	s.block()
	f := s.current()
	if len(f.hunks) == 0 {
		f.hunks = append(f.hunks, hunk{on: true})
	}
	s.seg.pairs = s.pair - s.seg.pair
	f.segs = append(f.segs, s.seg)
	f.hunks[len(f.hunks)-1].n++
	s.open = false
	s.entries++
}

// block ends lines that are side by side.
func (s *Scanner) block() {
	s.pair += max(s.del, s.add)
	s.del, s.add = 0, 0
}

// take takes a line in.
func (s *Scanner) take(line []byte, n int64) {
	note := len(line) > 0 && Kind(line[0]) == Note
	kind, ok := kindOf(line)
	switch {
	case note && (s.open || s.oldLeft+s.newLeft > 0):
		if s.open {
			s.seg.size += n
		}
	case ok && s.oldLeft+s.newLeft > 0:
		s.count(line, kind, n)
	default:
		s.oldLeft, s.newLeft = 0, 0
		text := string(line[:min(len(line), maxHead)])
		if h, old, new, ok := hunkHead(text); ok {
			s.hunk(h, old, new)
		} else {
			s.tell(text)
		}
	}
}

// count takes a line of a hunk in.
func (s *Scanner) count(line []byte, kind Kind, n int64) {
	f := s.current()
	if !s.open {
		s.open, s.seg = true, segment{off: s.off, line: s.line, pair: s.pair, old: s.old, new: s.new}
	}
	s.seg.size += n
	s.seg.lines++
	s.line++
	switch kind {
	case Added:
		s.add++
		s.new, s.newLeft, f.Added = s.new+1, max(s.newLeft-1, 0), f.Added+1
	case Removed:
		if s.add > 0 {
			s.block()
		}
		s.del++
		s.old, s.oldLeft, f.Removed = s.old+1, max(s.oldLeft-1, 0), f.Removed+1
	default:
		s.block()
		s.pair++
		s.old, s.new, s.oldLeft, s.newLeft = s.old+1, s.new+1, max(s.oldLeft-1, 0), max(s.newLeft-1, 0)
	}
	if s.looked < lookedAt && len(line) > 0 && len(line) < maxPointed {
		f.pointer(string(line[1:]), kind)
	}
	if s.looked++; s.looked <= lookedAt && !f.Generated {
		f.Generated = generatedBy(line)
	}
}

// pointer takes in a line of a file that may be a pointer of git LFS, whose first line
// every change of it shows.
func (f *File) pointer(line string, kind Kind) {
	if line == "version https://git-lfs.github.com/spec/v1" && f.Added+f.Removed <= 1 {
		f.LFS = true
	}
	text, is := strings.CutPrefix(line, "size ")
	n, err := strconv.ParseInt(text, 10, 64)
	if !f.LFS || !is || err != nil || n < 0 {
		return
	}
	if kind != Added {
		f.OldSize = n
	}
	if kind != Removed {
		f.NewSize = n
	}
}

// generatedBy reports that a line says that a program wrote the file.
func generatedBy(line []byte) bool {
	line = line[:min(len(line), 500)]
	return bytes.Contains(line, []byte("Code generated")) && bytes.Contains(line, []byte("DO NOT EDIT")) || bytes.Contains(line, []byte("@generated"))
}

// hunk begins a hunk.
func (s *Scanner) hunk(h hunk, old, new int) {
	if !s.begun || s.name != "" && !s.header {
		if s.name != "" {
			s.part.Odd--
		}
		s.begin(File{Path: s.name})
	}
	s.header, s.name = false, ""
	f := s.current()
	h.seg = len(f.segs)
	f.hunks = append(f.hunks, h)
	s.entries++
	s.oldLeft, s.newLeft, s.old, s.new, s.line, s.pair = old, new, h.old, h.new, 0, 0
}

// begin begins a file.
func (s *Scanner) begin(f File) {
	f.OldSize, f.NewSize = -1, -1
	f.Generated = Generated(f.Path)
	s.part.all = append(s.part.all, f)
	s.begun, s.header, s.packed, s.sizes, s.looked, s.name = true, false, false, 0, 0, ""
	s.entries++
}

// tell takes a line between hunks in.
func (s *Scanner) tell(line string) {
	switch rest, git := strings.CutPrefix(line, "diff --git "); {
	case git:
		s.begin(renamed(gitNames(rest)))
		s.header = true
	case strings.HasPrefix(line, "diff "):
		s.part.Odd++
		s.name = ""
	case s.packed:
		s.part.Odd++
		if s.sizes < 2 {
			s.packedSize(line)
		}
	case s.header:
		s.about(line)
	case strings.HasPrefix(line, "+++ ") && strings.HasPrefix(s.name, "--- "):
		s.part.Odd--
		s.begin(named(fileName(s.name), fileName(line)))
	case strings.HasPrefix(line, "Binary files ") && strings.HasSuffix(line, " differ"):
		old, path, _ := strings.Cut(strings.TrimSuffix(line[len("Binary files "):], " differ"), " and ")
		f := named(old, path)
		f.Binary = true
		s.begin(f)
	case strings.HasPrefix(line, "Index: "):
		s.name = line[len("Index: "):]
	case line != "":
		s.part.Odd++ // until something is found below that it names
		s.name = line
	}
}

// ScanStep is how many bytes are scanned at a time, so that the first files are there
// at once.
const ScanStep = 1 << 20
