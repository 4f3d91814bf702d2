package jsonrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
)

// MaxLine is the longest message that is read unless the options say otherwise,
// in bytes.
const MaxLine = 10 << 20

// Options of New.
type Options struct {
	// Send queues one line for the other side, without its newline. It must
	// not wait.
	Send func(line []byte) error
	// Handle takes the next request or notification. Nothing more is read
	// until it returns.
	Handle func(r *Request)
	// Noise takes a line that is no message: all of it, or of one that is too
	// long the beginning, cut being the rest in bytes. An error ends the
	// connection.
	Noise func(line []byte, cut int) error
	// MaxLine is the longest message that is read, in bytes; 0 is the usual one.
	MaxLine int
	// Mask hides secrets in what is read; nil hides nothing.
	Mask *secret.Mask
}

// Conn is one connection. Its methods may be called from any goroutine.
type Conn struct {
	opt  Options
	done chan struct{}

	mu    sync.Mutex
	last  uint64
	calls map[uint64]*Call
	err   error // why it ended, valid after done
}

// New makes a connection; Run reads from the other side.
func New(opt Options) *Conn {
	return &Conn{opt: opt, done: make(chan struct{}), calls: map[uint64]*Call{}}
}

// ErrClosed is wrapped by the error of every call that a connection's end
// leaves without an answer.
var ErrClosed = errors.New("the connection has ended")

// Run reads messages until the stream or the connection ends, and returns why.
func (c *Conn) Run(in io.Reader) error {
	lines := c.opt.Mask.Writer(&pipe.Splitter{Max: cmp.Or(c.opt.MaxLine, MaxLine), Emit: c.line})
	buf := make([]byte, 64<<10)
	for c.Err() == nil {
		n, err := in.Read(buf)
		_, _ = lines.Write(buf[:n])
		if err != nil {
			lines.Close()
			c.End(ErrClosed)
		}
	}
	return c.Err()
}

// End ends the connection for a reason; the first one counts. Calls without an
// answer fail with it.
func (c *Conn) End(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	if !errors.Is(why, ErrClosed) {
		why = fmt.Errorf("%w: %w", ErrClosed, why)
	}
	c.err = why
	for id, call := range c.calls {
		call.settle(nil, why)
		delete(c.calls, id)
	}
	close(c.done)
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection has ended, nil while it stands.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Conn) line(line []byte, cut int) {
	if c.Err() != nil {
		return
	}
	m, ok := message{}, false
	if cut == 0 {
		line = c.opt.Mask.JSON(line)
		m, ok = parse(line)
	}
	switch {
	case ok && m.Method != "":
		c.opt.Handle(&Request{Method: m.Method, Params: m.Params, conn: c, id: m.ID})
	case ok && c.answer(m):
	default:
		if err := c.opt.Noise(line, cut); err != nil {
			c.End(err)
		}
	}
}

// answer settles the call that a message answers; false when there was none.
// What comes for one that was given up, or has its answer, is dropped.
func (c *Conn) answer(m message) bool {
	id, err := strconv.ParseUint(string(m.ID), 10, 64)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[id]
	if call == nil {
		return id > 0 && id <= c.last
	}
	delete(c.calls, id)
	if m.Error != nil {
		call.settle(nil, m.Error)
	} else {
		call.settle(m.Result, nil)
	}
	return true
}

// Call is a request of ours on its way.
type Call struct {
	ID     uint64        // of the request; 0 when it was not sent
	Done   chan struct{} // closed when the two below are valid
	Result core.Raw
	Err    error // an *Error when the other side refused, else one that wraps ErrClosed
}

func (c *Call) settle(result core.Raw, err error) {
	c.Result, c.Err = result, err
	close(c.Done)
}

// Start sends a request and returns at once.
func (c *Conn) Start(method string, params any) *Call {
	call := &Call{Done: make(chan struct{})}
	data, err := core.Encode(params)
	if err != nil {
		call.settle(nil, fmt.Errorf("encode the parameters of %s: %w", method, err))
		return call
	}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		call.settle(nil, c.err)
		return call
	}
	c.last++
	id := c.last
	call.ID = id
	c.calls[id] = call
	c.mu.Unlock()
	if err := c.send(message{ID: core.Raw(strconv.FormatUint(id, 10)), Method: method, Params: data}); err != nil {
		c.End(err)
	}
	return call
}

// Call sends a request and waits for its result, which it decodes into result
// unless that is nil. A ctx that ends first gives the request up.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	call := c.Start(method, params)
	select {
	case <-call.Done:
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.calls, call.ID)
		c.mu.Unlock()
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
	if call.Err != nil {
		return fmt.Errorf("%s: %w", method, call.Err)
	}
	if result == nil {
		return nil
	}
	if err := Decode(call.Result, result); err != nil {
		return fmt.Errorf("%s: not a result of this method: %w", method, err)
	}
	return nil
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	data, err := core.Encode(params)
	if err != nil {
		return fmt.Errorf("encode the parameters of %s: %w", method, err)
	}
	return c.send(message{Method: method, Params: data})
}

func (c *Conn) send(m message) error {
	m.Version = "2.0"
	line, err := core.Encode(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	return c.opt.Send(line)
}

// Request is a request or notification of the other side.
type Request struct {
	Method string
	Params core.Raw

	conn *Conn
	id   core.Raw // nil for a notification
	once sync.Once
}

// Wants reports whether the other side waits for an answer.
func (r *Request) Wants() bool { return len(r.id) > 0 }

// Reply answers a request; the first answer counts. What can't be sent any
// more is dropped: nobody is there to wait for it.
func (r *Request) Reply(result any) {
	data, err := core.Encode(result)
	if err != nil {
		r.Fail(Errorf(InternalError, "encode the result: %v", err))
		return
	}
	r.answer(message{ID: r.id, Result: data})
}

// Fail answers a request with an error.
func (r *Request) Fail(e *Error) { r.answer(message{ID: r.id, Error: e}) }

func (r *Request) answer(m message) {
	if !r.Wants() {
		return
	}
	r.once.Do(func() {
		if err := r.conn.send(m); err != nil {
			r.conn.End(err)
		}
	})
}
