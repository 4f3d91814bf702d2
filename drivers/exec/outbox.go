package exec

import (
	"errors"
	"os"
	"sync"
)

// Bounds of what waits for an agent that does not read its stdin.
const (
	maxOutboxBytes = 8 << 20
	maxOutboxLines = 4096
)

var errFull = errors.New("the agent does not read its stdin, and too much waits for it")

// outbox writes lines to an agent's stdin without ever making their sender
// wait.
type outbox struct {
	to   *os.File
	bell chan struct{} // one slot

	mu     sync.Mutex
	lines  [][]byte
	bytes  int
	broken bool // the agent has closed its stdin: nothing will be read any more
	closed bool
}

func newOutbox(to *os.File) *outbox {
	return &outbox{to: to, bell: make(chan struct{}, 1)}
}

// put queues one line, without its newline. What goes to a closed stdin is
// dropped: an agent need not listen.
func (o *outbox) put(line []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken || o.closed {
		return nil
	}
	if len(o.lines) >= maxOutboxLines || o.bytes+len(line) > maxOutboxBytes {
		return errFull
	}
	o.lines = append(o.lines, append(line[:len(line):len(line)], '\n'))
	o.bytes += len(line) + 1
	o.ring()
	return nil
}

func (o *outbox) ring() {
	select {
	case o.bell <- struct{}{}:
	default:
	}
}

// run writes until close.
func (o *outbox) run() {
	for range o.bell {
		for {
			line, ok := o.next()
			if !ok {
				break
			}
			_, err := o.to.Write(line)
			o.mu.Lock()
			o.bytes -= len(line)
			if err != nil {
				o.broken, o.lines = true, nil
			}
			o.mu.Unlock()
		}
		o.mu.Lock()
		closed := o.closed
		o.mu.Unlock()
		if closed {
			return
		}
	}
}

func (o *outbox) next() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.lines) == 0 {
		return nil, false
	}
	line := o.lines[0]
	o.lines = o.lines[1:]
	return line, true
}

// unread reports whether the other side has left some of it unread.
func (o *outbox) unread() bool {
	o.mu.Lock()
	waiting := len(o.lines) > 0 || o.bytes > 0 || o.broken
	o.mu.Unlock()
	n, ok := pending(o.to)
	return waiting || ok && n > 0
}

// close ends run; a write that is stuck ends with the file's own Close.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.ring()
	o.to.Close()
}
