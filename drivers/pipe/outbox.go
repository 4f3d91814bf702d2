package pipe

import (
	"errors"
	"os"
	"sync"

	"swarmdeck/engine/loop"

	"golang.org/x/sys/unix"
)

// Bounds of what waits for an agent that does not read its stdin.
const (
	maxOutboxBytes = 8 << 20
	maxOutboxLines = 4096
)

// ErrFull is what Put says when too much waits already.
var ErrFull = errors.New("the agent does not read its stdin, and too much waits for it")

// Outbox writes lines to an agent's stdin without ever making their sender
// wait.
type Outbox struct {
	to   *os.File
	most int           // bytes that may wait
	bell chan struct{} // one slot

	mu     sync.Mutex
	lines  [][]byte
	bytes  int
	broken bool // the agent has closed its stdin: nothing will be read any more
	last   bool // nothing more comes: it is closed once all is written
	closed bool
}

// NewOutbox makes an outbox; Run does its writing.
func NewOutbox(to *os.File) *Outbox { return NewOutboxOf(to, maxOutboxBytes) }

// NewOutboxOf makes an outbox in which most bytes may wait.
func NewOutboxOf(to *os.File, most int) *Outbox {
	return &Outbox{to: to, most: most, bell: make(chan struct{}, 1)}
}

// Put queues one line, without its newline. What goes to a closed stdin is
// dropped: an agent need not listen.
func (o *Outbox) Put(line []byte) error { return o.Send(append(line[:len(line):len(line)], '\n')) }

// Send is Put for bytes as they are, which are not changed afterwards.
func (o *Outbox) Send(data []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken || o.last || o.closed {
		return nil
	}
	if len(o.lines) >= maxOutboxLines || o.bytes+len(data) > o.most {
		return ErrFull
	}
	o.lines = append(o.lines, data)
	o.bytes += len(data)
	o.ring()
	return nil
}

func (o *Outbox) ring() { loop.Ring(o.bell) }

// Run writes until Close.
func (o *Outbox) Run() {
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
		closed, last := o.closed, o.last && len(o.lines) == 0
		o.mu.Unlock()
		if last {
			o.to.Close()
		}
		if closed || last {
			return
		}
	}
}

func (o *Outbox) next() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.lines) == 0 {
		return nil, false
	}
	line := o.lines[0]
	o.lines = o.lines[1:]
	return line, true
}

// Unread reports whether the other side has left some of it unread.
func (o *Outbox) Unread() bool {
	o.mu.Lock()
	waiting := len(o.lines) > 0 || o.bytes > 0 || o.broken
	o.mu.Unlock()
	n, ok := Pending(o.to)
	return waiting || ok && n > 0
}

// End has the agent find the end of its stdin after what waits. What is put later is
// dropped.
func (o *Outbox) End() {
	o.mu.Lock()
	o.last = true
	o.mu.Unlock()
	o.ring()
}

// Close ends Run; a write that is stuck ends with the file's own Close.
func (o *Outbox) Close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.ring()
	o.to.Close()
}

// Pending is the number of bytes in a pipe that nobody has read.
func Pending(f *os.File) (n int, ok bool) {
	c, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	cerr := c.Control(func(fd uintptr) {
		n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	})
	return n, err == nil && cerr == nil
}
