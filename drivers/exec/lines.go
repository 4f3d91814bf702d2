package exec

import (
	"bytes"
	"strings"
)

// splitter cuts a byte stream into lines of a bounded length. Of a longer
// line it keeps the first max bytes and counts the rest.
type splitter struct {
	max  int
	emit func(line []byte, cut int) // line is valid only during the call
	buf  []byte
	cut  int
}

func (s *splitter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			s.add(p)
			return n, nil
		}
		if len(s.buf) == 0 && s.cut == 0 && i <= s.max {
			s.emit(trimCR(p[:i]), 0) // the common case, without a copy
		} else {
			s.add(p[:i])
			s.flush()
		}
		p = p[i+1:]
	}
}

// Close emits a last line that had no newline.
func (s *splitter) Close() {
	if len(s.buf) > 0 || s.cut > 0 {
		s.flush()
	}
}

func (s *splitter) add(p []byte) {
	keep := min(len(p), s.max-len(s.buf))
	s.buf = append(s.buf, p[:keep]...)
	s.cut += len(p) - keep
}

func (s *splitter) flush() {
	s.emit(trimCR(s.buf), s.cut)
	s.cut = 0
	if cap(s.buf) > 64<<10 {
		s.buf = nil // one huge line must not hold its memory for ever
	} else {
		s.buf = s.buf[:0]
	}
}

func trimCR(b []byte) []byte { return bytes.TrimSuffix(b, []byte{'\r'}) }

// text makes valid UTF-8 of what a command wrote.
func text(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// clip shortens a text to at most max bytes, without splitting a character.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max-len("…")], "") + "…"
}
