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
	maxTail     = 1000 // lines of its end
	maxTailSize = 1 << 20
)

// taskLog passes lines of both streams on, one at a time, up to the bounds, and
// the last ones once there are no more.
type taskLog struct {
	mu   sync.Mutex
	out  func(level, line string)
	log  pipe.Log[logged]
	rest string // where what is past the bounds can be found
}

type logged struct{ level, line string }

func newTaskLog(out func(level, line string), rest string) *taskLog {
	tail := pipe.Tail[logged]{Most: maxTail, Bytes: maxTailSize}
	return &taskLog{out: out, rest: rest, log: pipe.Log[logged]{Lines: maxLogLines, Bytes: maxLogBytes, Tail: tail}}
}

func (l *taskLog) line(level string, line []byte, cut int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := pipe.Marked(line, cut)
	passes, first := l.log.Passes(logged{level, s}, len(s))
	if first {
		l.out("WARN", fmt.Sprintf("log is cut here: it reached its limit of %d lines or %d MiB; %s; its last lines follow at the end",
			maxLogLines, maxLogBytes>>20, l.rest))
	}
	if passes {
		l.out(level, s)
	}
}

// end passes on the last lines of a log that was cut.
func (l *taskLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, gone := l.log.Tail.Take()
	if gone > 0 {
		l.out("WARN", fmt.Sprintf("%d lines are left out here", gone))
	}
	for _, x := range lines {
		l.out(x.level, x.line)
	}
}

// lastLine is the last line of a text that is not blank, for error messages.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimSpace(s)
}
