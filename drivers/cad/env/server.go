package env

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

const (
	// MaxLine is the longest message in bytes that is read.
	MaxLine = 32 << 20
	// MaxQueue is how many bytes of messages wait for their turn before nothing
	// more is read.
	MaxQueue = 64 << 20

	progressAfter = time.Second
	progressEvery = 500 * time.Millisecond
)

// conn is one client. Its requests are carried out in the order in which they
// came, except for $/cancelRequest and the methods of system, which are
// answered at once.
type conn struct {
	env       *Env
	workspace string // that it switched to; of the worker alone

	write sync.Mutex
	out   io.Writer
	fail  context.CancelCauseFunc

	mu      sync.Mutex
	changed *sync.Cond
	queue   []turn
	waiting int // bytes
	over    bool
	// answering is set while the reader answers what does not wait for its turn.
	answering bool
	now       *call               // being carried out
	gone      map[string]struct{} // ids cancelled before their turn
}

// turn is a line that waits.
type turn struct {
	requests []request
	batch    bool
	size     int
}

// Serve answers the messages of one client, one to a line, until its stream
// ends, the context does or it asks for shutdown. What was read is answered
// before it returns; after shutdown, what was asked before that.
func (e *Env) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c := &conn{env: e, workspace: model.Main, out: out, fail: fail, gone: map[string]struct{}{}}
	c.changed = sync.NewCond(&c.mu)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.work(ctx)
	}()
	wake := context.AfterFunc(ctx, c.end)
	defer wake()
	read := make(chan error, 1)
	go func() { read <- c.read(ctx, bufio.NewReaderSize(in, 64<<10)) }() // ends with the stream
	var err error
	select {
	case err = <-read:
		c.end()
		<-done
	case <-ctx.Done():
		<-done
	case <-done: // by system.shutdown, whose answer is on its way
		c.answered(ctx)
	}
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// answered waits until what is answered at once has been.
func (c *conn) answered(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.answering && ctx.Err() == nil {
		c.changed.Wait()
	}
}

// end lets the worker stop after what is queued.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.changed.Broadcast()
}

// read takes lines until the stream ends.
func (c *conn) read(ctx context.Context, in *bufio.Reader) error {
	for {
		line, long, err := readLine(in)
		switch {
		case long:
			c.send(answer{Error: Refuse(ParseError, "", nil, fmt.Sprintf("the line is longer than %d bytes", MaxLine), "send shorter messages")}.encode())
		case len(bytes.TrimSpace(line)) > 0:
			if c.take(ctx, line) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read requests: %w", err)
		}
	}
}

// readLine reads one line without its end; of one that is too long, all is
// read and nothing kept.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if !long {
			line = append(line, part...)
		}
		if len(line) > MaxLine {
			line, long = nil, true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// take answers a line at once or puts it into the queue. It says whether to
// stop reading.
func (c *conn) take(ctx context.Context, line []byte) (stop bool) {
	requests, batch := read(line)
	if r := requests[0]; !batch && r.wrong == nil && (r.method == "$/cancelRequest" || strings.HasPrefix(r.method, "system.")) {
		c.mu.Lock()
		c.answering = true
		c.mu.Unlock()
		if a := c.handle(ctx, r); a != nil {
			c.send(a)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.answering = false
		c.changed.Broadcast()
		return c.over
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.waiting > MaxQueue && !c.over {
		c.changed.Wait()
	}
	if c.over {
		return true
	}
	c.queue = append(c.queue, turn{requests: requests, batch: batch, size: len(line)})
	c.waiting += len(line)
	c.changed.Broadcast()
	return false
}

// work carries the queue out.
func (c *conn) work(ctx context.Context) {
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.over {
			c.changed.Wait()
		}
		if len(c.queue) == 0 || ctx.Err() != nil {
			c.mu.Unlock()
			return
		}
		t := c.queue[0]
		c.queue[0] = turn{}
		c.queue = c.queue[1:]
		c.waiting -= t.size
		c.changed.Broadcast()
		c.mu.Unlock()
		c.carryOut(ctx, t)
	}
}

func (c *conn) carryOut(ctx context.Context, t turn) {
	defer c.forget(t.requests)
	if !t.batch {
		if a := c.handle(ctx, t.requests[0]); a != nil {
			c.send(a)
		}
		return
	}
	var all []core.Raw
	for _, r := range t.requests {
		if a := c.handle(ctx, r); a != nil {
			all = append(all, a)
		}
	}
	if len(all) > 0 { // a batch of notifications gets no answer at all
		c.send(core.MustEncode(all))
	}
}

// forget lets ids be used again for requests that nobody has cancelled.
func (c *conn) forget(done []request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range done {
		delete(c.gone, string(r.id))
	}
}

// send writes one line. A client that does not read any more ends its
// connection.
func (c *conn) send(line []byte) {
	c.write.Lock()
	defer c.write.Unlock()
	if _, err := c.out.Write(append(line, '\n')); err != nil {
		c.fail(fmt.Errorf("write answers: %w", err))
	}
}
