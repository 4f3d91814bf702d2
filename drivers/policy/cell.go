package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/judge"
)

// cell is the process of one decision.
type cell struct {
	life  context.Context
	kill  context.CancelCauseFunc
	cmd   *exec.Cmd
	order *os.File // of a jail that waits: what it shall become
	in    io.WriteCloser
	out   bounded
	said  bounded
}

// open starts the process of a cell. It reads from order, if there is one, as
// its file 3.
func open(command func(context.Context) *exec.Cmd, order *os.File) (*cell, error) {
	c := &cell{out: bounded{most: judge.MaxAnswer}, said: bounded{most: maxStderr}}
	c.life, c.kill = context.WithCancelCause(context.Background())
	c.out.over = func() { c.kill(errMuch) }
	c.cmd = command(c.life)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.said
	if order != nil {
		c.cmd.ExtraFiles = []*os.File{order}
	}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		c.kill(nil)
		return nil, fmt.Errorf("start the policy: %w", err)
	}
	return c, nil
}

// run gives the order and the question, and waits for the end.
func (c *cell) run(order []string, input []byte) error {
	if c.order != nil {
		_, err := c.order.WriteString(strings.Join(order, "\x00"))
		_ = c.order.Close()
		if err != nil {
			c.kill(err)
			_ = c.cmd.Wait()
			return fmt.Errorf("tell the jail what to run: %w", err)
		}
	}
	go func() { // Wait closes the pipe at the latest
		_, _ = c.in.Write(input)
		_ = c.in.Close()
	}()
	return c.cmd.Wait()
}

// end ends a cell that nobody needs.
func (c *cell) end() {
	c.kill(nil)
	_ = c.order.Close()
	_ = c.cmd.Wait()
}

// ahead is how many jails wait for a decision. To start this program anew
// takes ten times as long as all else that a jail needs, so that is done
// before the question comes; the policy itself is started by the question.
const ahead = 2

// cells are jails that wait.
type cells struct {
	make func(identity) (*cell, error)
	idle time.Duration // without a decision, after which none wait any more

	making  sync.WaitGroup
	made    chan made
	closing chan struct{}

	mu     sync.Mutex
	stock  int // made and in the making, without those that are spoken for
	timer  *time.Timer
	closed bool
}

type made struct {
	cell *cell
	err  error
}

func (s *cells) init(idle time.Duration, make_ func(identity) (*cell, error)) {
	s.make, s.idle = make_, idle
	s.made, s.closing = make(chan made, ahead), make(chan struct{})
}

// take gets a jail: one that waits, or a new one where none does.
func (s *cells) take(ctx context.Context, id identity) (*cell, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	if s.stock--; s.stock < 0 {
		s.stock++
		s.making.Go(func() { s.add(id) })
	}
	s.mu.Unlock()
	select {
	case m := <-s.made:
		if m.err != nil { // maybe long ago
			return s.make(id)
		}
		return m.cell, nil
	case <-ctx.Done():
		s.mu.Lock()
		s.stock++ // it is there for the next
		s.mu.Unlock()
		return nil, fmt.Errorf("start the policy: %w", context.Cause(ctx))
	}
}

// refill has jails made for the decisions to come. It follows a decision, which
// it would only delay.
func (s *cells) refill(id identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for ; s.stock < ahead; s.stock++ {
		s.making.Go(func() { s.add(id) })
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(s.idle, s.rest)
	} else {
		s.timer.Reset(s.idle)
	}
}

func (s *cells) add(id identity) {
	c, err := s.make(id)
	select {
	case s.made <- made{c, err}:
	case <-s.closing:
		if err == nil {
			c.end()
		}
	}
}

// rest ends the jails that wait. It comes again for those still in the making.
func (s *cells) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if s.stock > 0 && !s.closed {
			s.timer.Reset(s.idle)
		}
	}()
	for {
		select {
		case m := <-s.made:
			s.stock--
			if m.err == nil {
				m.cell.end()
			}
		default:
			return
		}
	}
}

func (s *cells) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	close(s.closing)
	s.making.Wait()
	for {
		select {
		case m := <-s.made:
			if m.err == nil {
				m.cell.end()
			}
		default:
			return
		}
	}
}

// errClosed is what is said of decisions after Close.
var errClosed = errors.New("policies are being closed")

// waiting makes a jail that waits for its order.
func (r *Runner) waiting(id identity) (*cell, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the policy: %w", err)
	}
	c, err := open(r.jailCommand(id, []string{waitWord}), theirs)
	_ = theirs.Close()
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	c.order = ours
	return c, nil
}
