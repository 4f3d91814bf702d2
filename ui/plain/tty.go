package plain

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"swarmdeck/engine/loop"
	"swarmdeck/ui/term"
)

// Keys that mean something in a line that is being typed.
const (
	keyInterrupt = 0x03 // ctrl+c
	keyEnd       = 0x04 // ctrl+d
	keyBack      = 0x08
	keyKill      = 0x15 // ctrl+u
	keyEscape    = 0x1b
	keyDelete    = 0x7f
)

// crlf writes to a terminal whose lines end as those of a typewriter: one at
// the other end of SSH, which nothing on this side translates for.
type crlf struct{ out io.Writer }

func (w crlf) Write(p []byte) (int, error) {
	if _, err := w.out.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// typist makes lines of keys, and shows what is typed: what a local terminal's
// driver does before a program sees a line. The keys of a remote one come raw.
type typist struct {
	echo func(string)
	line []byte
	skip int // inside an escape sequence: 1 after escape, 2 in its parameters
	last byte
}

// key takes one byte. done says that the line is complete, over that there are
// no more, stop that ctrl+c was typed.
func (t *typist) key(b byte) (done, over, stop bool) {
	before := t.last
	t.last = b
	switch {
	case t.skip == 1:
		if t.skip = 0; b == '[' || b == 'O' {
			t.skip = 2
		}
	case t.skip == 2:
		if b >= 0x40 && b <= 0x7e {
			t.skip = 0
		}
	case b == keyEscape:
		t.skip = 1
	case b == '\n' && before == '\r':
	case b == '\r' || b == '\n':
		t.echo("\n")
		return true, false, false
	case b == keyInterrupt:
		t.line = t.line[:0]
		t.echo("^C\n")
		return false, false, true
	case b == keyEnd:
		return false, len(t.line) == 0, false
	case b == keyBack || b == keyDelete:
		t.back()
	case b == keyKill:
		for len(t.line) > 0 {
			t.back()
		}
	case b >= ' ' && len(t.line) < maxLine:
		t.add(b)
	}
	return false, false, false
}

// add appends a byte, and shows the character that it completes.
func (t *typist) add(b byte) {
	t.line = append(t.line, b)
	start := len(t.line) - 1
	for start > 0 && len(t.line)-start < utf8.UTFMax && !utf8.RuneStart(t.line[start]) {
		start--
	}
	if r, n := utf8.DecodeRune(t.line[start:]); n == len(t.line)-start && r != utf8.RuneError && unicode.IsPrint(r) {
		t.echo(string(r))
	}
}

// back takes the last character away.
func (t *typist) back() {
	r, n := utf8.DecodeLastRune(t.line)
	if n == 0 {
		return
	}
	t.line = t.line[:len(t.line)-n]
	if r != utf8.RuneError && unicode.IsPrint(r) {
		t.echo("\b \b")
	}
}

// readKeys is read for a terminal at the other end. Each ctrl+c comes on the
// second channel.
func readKeys(ctx context.Context, in io.Reader, echo func(string)) (<-chan string, <-chan struct{}, *error) {
	lines, stops, failed := make(chan string), make(chan struct{}, 1), new(error)
	go func() {
		defer close(lines)
		t := &typist{echo: echo}
		buf := make([]byte, 4096)
		for {
			n, err := in.Read(buf)
			for _, b := range buf[:n] {
				done, over, stop := t.key(b)
				switch {
				case over:
					return
				case stop:
					loop.Ring(stops)
				case done:
					select {
					case lines <- string(t.line):
						t.line = t.line[:0]
					case <-ctx.Done():
						return
					}
				}
			}
			if err != nil {
				if err != io.EOF {
					*failed = err
				}
				return
			}
		}
	}()
	return lines, stops, failed
}

// writer keeps the lines of commands and announcements apart.
type writer struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer for commands, which write in whole lines and
// clean what they write.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// line writes one line. Whatever is in it, a terminal sees only text.
func (w *writer) line(format string, args ...any) {
	w.raw(term.Clean(fmt.Sprintf(format, args...)) + "\n")
}

// block writes several lines, hidden characters spelled out, each after the
// first under the first.
func (w *writer) block(name, text string) {
	var b strings.Builder
	name = term.Clean(name)
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i == 0 {
			fmt.Fprintf(&b, "%s: %s\n", name, term.Reveal(line))
		} else {
			fmt.Fprintf(&b, "  %s\n", term.Reveal(line))
		}
	}
	w.raw(b.String())
}

// raw writes text that is known to be harmless.
func (w *writer) raw(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	io.WriteString(w.out, text) //nolint:errcheck // there is no one else to tell
}
