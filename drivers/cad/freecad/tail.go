package freecad

import (
	"strings"
	"sync"

	"swarmdeck/drivers/pipe"
)

// maxTail is how much of what a process says is kept, in bytes: its end.
const maxTail = 4096

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer; it never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxTail):]...)
	if over := len(t.text) - maxTail; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// last is the last line, which of a Python error says what it was.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(pipe.Text(t.text)), "\n")
	return clip(strings.TrimSpace(lines[len(lines)-1]), 300)
}

// clip bounds a text and keeps control characters out of it.
func clip(text string, most int) string {
	return pipe.Clip(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text), most)
}
