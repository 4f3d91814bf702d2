package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"swarmdeck/drivers/desk"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
)

// Way is the first that is said on a stream which the keeper opens: a connection of a
// run that wants out of its cell, to one of the cell's own ports. What the connection
// carries follows (Tunnel).
type Way struct {
	Run  string `json:"run"`
	Port int    `json:"port" allow:"1-65535"`
	// Who opened it, as the keeper sees it.
	PID     int    `json:"pid,omitzero" allow:"0 or more"`
	Process string `json:"process,omitempty"`
}

// Bounds of connections that go out.
const (
	MaxWaysOfRun = 64   // of one run at once
	MaxWays      = 1024 // of one link at once, at the engine; its keeper keeps to half of that
	MaxPorts     = 16   // of a run, beside the proxies'
	record       = 16 << 10
	maxWay       = 1 << 10 // bytes
)

// Check reports one that can't be, and cleans its words.
func (w *Way) Check() error {
	if !id(w.Run) {
		return core.Invalid("run", w.Run, "an id")
	}
	w.Process = desk.Text(w.Process, 64)
	return bound.Check(w)
}

// Tunnel carries one connection over a stream, in records: two bytes of length, high
// byte first, and that many bytes. One of no bytes is the end of what a side says, in
// order; a stream that is closed without it says that the connection broke, or that
// nobody is there any more.
//
// One reader and one writer at a time; CloseWrite counts as a writer.
type Tunnel struct {
	s     io.ReadWriteCloser
	left  int // of the record that is being read
	ended bool
	shut  bool
	buf   [2 + record]byte
	once  sync.Once
}

// NewTunnel is that over a stream of which nothing was read or written yet.
func NewTunnel(s io.ReadWriteCloser) *Tunnel { return &Tunnel{s: s} }

// Begin says whose connection it is.
func (t *Tunnel) Begin(w Way) error {
	data, err := core.Encode(w)
	if err != nil {
		return fmt.Errorf("encode a way: %w", err)
	}
	_, err = t.Write(data)
	return err
}

// Begun reads what Begin has said.
func (t *Tunnel) Begun() (w Way, err error) {
	if err := t.next(); err != nil {
		return w, err
	}
	if t.left > maxWay || t.ended {
		return w, fmt.Errorf("%w: a way of %d bytes, at most %d", ErrFrame, t.left, maxWay)
	}
	data := make([]byte, t.left)
	if _, err := io.ReadFull(t, data); err != nil {
		return w, err
	}
	if err := core.Decode(data, &w); err != nil {
		return w, err
	}
	return w, w.Check()
}

// next reads the head of a record.
func (t *Tunnel) next() error {
	var head [2]byte
	if _, err := io.ReadFull(t.s, head[:]); err != nil {
		return broken(err)
	}
	switch n := int(binary.BigEndian.Uint16(head[:])); {
	case n > record:
		return fmt.Errorf("%w: a record of %d bytes, at most %d", ErrFrame, n, record)
	case n == 0:
		t.ended = true
	default:
		t.left = n
	}
	return nil
}

// broken is the error of a stream that ended before what it carried.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Read implements io.Reader. io.EOF is the other side's end, in order.
func (t *Tunnel) Read(b []byte) (int, error) {
	for t.left == 0 {
		if t.ended {
			return 0, io.EOF
		}
		if err := t.next(); err != nil {
			return 0, err
		}
	}
	if len(b) == 0 {
		return 0, nil
	}
	n, err := t.s.Read(b[:min(len(b), t.left)])
	t.left -= n
	return n, broken(err)
}

// Gone waits, after the other side's end, until it has closed the stream.
func (t *Tunnel) Gone() {
	var b [1]byte
	_, _ = t.s.Read(b[:]) // nothing comes
}

func (t *Tunnel) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		n := copy(t.buf[2:], b)
		binary.BigEndian.PutUint16(t.buf[:], uint16(n))
		if _, err := t.s.Write(t.buf[:2+n]); err != nil {
			return written, err
		}
		written, b = written+n, b[n:]
	}
	return written, nil
}

// CloseWrite says that nothing else comes from this side.
func (t *Tunnel) CloseWrite() error {
	if t.shut {
		return nil
	}
	t.shut = true
	_, err := t.s.Write([]byte{0, 0})
	return err
}

// Close closes the stream; the connection is over for the other side too.
func (t *Tunnel) Close() (err error) {
	t.once.Do(func() { err = t.s.Close() })
	return err
}
