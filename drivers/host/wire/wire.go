// Package wire is what an engine and its keeper on another host say to each
// other: JSON frames on the streams of one multiplexed connection. The engine
// opens all streams: the first for what is about the link as a whole (Control),
// then one for each run (FromEngine, FromHost).
//
// Nothing is lost or repeated when a link is: what the engine wants is a row of
// numbered items, what happened there a row of numbered events, and output has
// its place in its stream. Each side keeps what the other has not acknowledged,
// and the first frame of a new stream says where to go on.
package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// Version of what is said. Control must be understood across versions, because
// it ends a keeper of another one.
const Version = 6

// Bounds of what is on its way.
const (
	MaxFromEngine = 4 << 20   // bytes of a frame: an environment may be large
	MaxFromHost   = 256 << 10 // bytes of a frame
	Window        = 256 << 10 // bytes of a stream that are not acknowledged
	Chunk         = 32 << 10  // bytes of a stream in one frame
)

// Conn reads and writes frames: four bytes of length, high byte first, and a
// JSON object. One reader at a time; Send is safe for concurrent use.
type Conn struct {
	r    *bufio.Reader
	w    io.Writer
	most int
	mu   sync.Mutex
}

// New makes a connection that takes frames of at most so many bytes.
func New(rw io.ReadWriter, most int) *Conn {
	return &Conn{r: bufio.NewReaderSize(rw, 16<<10), w: rw, most: most}
}

// Send writes one frame.
func (c *Conn) Send(v any) error {
	data, err := core.Encode(v)
	if err != nil {
		return fmt.Errorf("encode a frame: %w", err)
	}
	frame := append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), uint32(len(data))), data...)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.w.Write(frame)
	return err
}

// Read reads one frame of exactly this kind.
func (c *Conn) Read(v any) error {
	data, err := c.frame()
	if err != nil {
		return err
	}
	return core.Decode(data, v)
}

// ReadAny is Read of a frame that may have members of another version.
func (c *Conn) ReadAny(v any) error {
	data, err := c.frame()
	if err != nil {
		return err
	}
	return core.DecodeStored(data, v)
}

// ErrFrame is what a frame is that can't be one.
var ErrFrame = errors.New("a frame that can't be one")

func (c *Conn) frame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || int64(n) > int64(c.most) {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrFrame, n, c.most)
	}
	// Grown as it comes: who says much need not send it.
	data, err := io.ReadAll(io.LimitReader(c.r, int64(n)))
	if err == nil && len(data) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

// Config is that of the multiplexed connection, at both ends: without a log, and without
// keep-alives, as there are beats.
func Config() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false
	c.LogOutput = io.Discard
	return c
}

// SinceBoot is a clock that goes on while the machine sleeps.
func SinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano())
}
