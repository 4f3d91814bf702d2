package plain

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"swarmdeck/ui/term"
)

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
