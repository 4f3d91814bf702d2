package exec

import (
	"fmt"
	"strings"
	"sync"

	"swarmdeck/drivers/pipe"
)

// Bounds of a task's log.
const (
	maxLogLine  = 64 << 10
	maxLogBytes = 16 << 20
	maxLogLines = 100_000
)

// taskLog passes lines of both streams on, one at a time, up to the bounds.
type taskLog struct {
	mu    sync.Mutex
	out   func(level, line string)
	lines int
	bytes int
	over  bool
	rest  string // where what is past the bounds can be found
}

func newTaskLog(out func(level, line string), rest string) *taskLog {
	return &taskLog{out: out, rest: rest}
}

func (l *taskLog) line(level string, line []byte, cut int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	if l.lines++; l.lines > maxLogLines || l.bytes+len(line) > maxLogBytes {
		l.over = true
		l.out("WARN", fmt.Sprintf("log ends here: it reached its limit of %d lines or %d MiB; %s",
			maxLogLines, maxLogBytes>>20, l.rest))
		return
	}
	l.bytes += len(line)
	s := pipe.Text(line)
	if cut > 0 {
		s += fmt.Sprintf(" … (%d more bytes of this line)", cut)
	}
	l.out(level, s)
}

// lastLine is the last line of a text that is not blank, for error messages.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimSpace(s)
}
