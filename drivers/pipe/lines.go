package pipe

import (
	"bytes"
	"fmt"
	"strings"
)

// Splitter cuts a byte stream into lines of a bounded length. Of a longer
// line it keeps the first Max bytes and counts the rest.
type Splitter struct {
	Max  int
	Emit func(line []byte, cut int) // line is valid only during the call
	buf  []byte
	cut  int
}

// Write implements io.Writer; it never fails.
func (s *Splitter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			s.add(p)
			return n, nil
		}
		if len(s.buf) == 0 && s.cut == 0 && i <= s.Max {
			s.Emit(trimCR(p[:i]), 0) // the common case, without a copy
		} else {
			s.add(p[:i])
			s.flush()
		}
		p = p[i+1:]
	}
}

// Close emits a last line that had no newline.
func (s *Splitter) Close() {
	if len(s.buf) > 0 || s.cut > 0 {
		s.flush()
	}
}

func (s *Splitter) add(p []byte) {
	keep := min(len(p), s.Max-len(s.buf))
	s.buf = append(s.buf, p[:keep]...)
	s.cut += len(p) - keep
}

func (s *Splitter) flush() {
	s.Emit(trimCR(s.buf), s.cut)
	s.cut = 0
	if cap(s.buf) > 64<<10 {
		s.buf = nil // one huge line must not hold its memory for ever
	} else {
		s.buf = s.buf[:0]
	}
}

func trimCR(b []byte) []byte { return bytes.TrimSuffix(b, []byte{'\r'}) }

// Text makes valid UTF-8 of what a process wrote.
func Text(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// Marked is Text of a line of which cut bytes were left out, and says so.
func Marked(line []byte, cut int) string {
	s := Text(line)
	if cut > 0 {
		s += fmt.Sprintf(" … (%d more bytes of this line)", cut)
	}
	return s
}
