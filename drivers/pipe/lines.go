// Package pipe speaks with a child process through its pipes, line by line,
// without ever waiting for it: lines from it are bounded, lines to it queue.
package pipe

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"swarmdeck/engine/secret"
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

// Streams are three pipes in the place of a process's standard input, output and error:
// its user has ours, and who stands for the process theirs.
func Streams() (ours, theirs [3]*os.File, err error) {
	for n := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			CloseAll(ours)
			CloseAll(theirs)
			return ours, theirs, fmt.Errorf("make a pipe: %w", err)
		}
		if ours[n], theirs[n] = r, w; n == 0 {
			ours[n], theirs[n] = w, r
		}
	}
	return ours, theirs, nil
}

// CloseAll closes those that are there.
func CloseAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// masked is a stream that is read as what it is written into makes of it.
type masked struct {
	io.ReadCloser
	in    *secret.Writer
	buf   []byte
	ready bytes.Buffer
	err   error
}

// Masked is a stream without secrets, as into makes it: what that writes to ready is read.
func Masked(from io.ReadCloser, mask *secret.Mask, into func(ready *bytes.Buffer) io.Writer) io.ReadCloser {
	m := &masked{ReadCloser: from, buf: make([]byte, 32<<10)}
	m.in = mask.Writer(into(&m.ready))
	return m
}

func (m *masked) Read(p []byte) (int, error) {
	for m.ready.Len() == 0 && m.err == nil {
		var n int
		n, m.err = m.ReadCloser.Read(m.buf)
		_, _ = m.in.Write(m.buf[:n])
		if m.err != nil {
			m.in.Close()
		}
	}
	if m.ready.Len() == 0 {
		return 0, m.err
	}
	return m.ready.Read(p)
}

// LastLine is the last line of a text that is not blank, for error messages.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
