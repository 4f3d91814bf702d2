package policy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/judge"
)

// lifetime is how many decisions a program that stays makes: its bound on the
// processor counts over its life, so it is started anew well before that.
const lifetime = 500

// servers are the programs that stay, by their digest.
type servers struct {
	mu     sync.Mutex
	byName map[string]*server
	closed bool
}

// server is one program that stays. It answers one question at a time.
type server struct {
	turn chan struct{} // holds a token while nobody asks
	proc *process
}

// process is one life of a program that stays.
type process struct {
	cmd  *exec.Cmd
	stop context.CancelFunc
	in   io.WriteCloser
	pipe *os.File // its stdout
	out  *bufio.Reader
	said *lockedText
	safe bool
	done int
}

// lockedText is what a program that stays says beside its answers.
type lockedText struct {
	mu sync.Mutex
	b  bounded
}

func (t *lockedText) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// take is what was said since the last take.
func (t *lockedText) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := sanitised(t.b.kept)
	t.b = bounded{most: maxStderr}
	return text
}

func (s *servers) of(digest string) (*server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("policies are being closed")
	}
	if s.byName == nil {
		s.byName = map[string]*server{}
	}
	one := s.byName[digest]
	if one == nil {
		one = &server{turn: make(chan struct{}, 1)}
		one.turn <- struct{}{}
		s.byName[digest] = one
	}
	return one, nil
}

func (s *servers) close() {
	s.mu.Lock()
	all := s.byName
	s.byName, s.closed = nil, true
	s.mu.Unlock()
	for _, one := range all {
		<-one.turn // a question ends by its deadline
		one.end()
		one.turn <- struct{}{}
	}
}

// Release ends a program that stays and rules no more. It is started again
// when it is asked again.
func (r *Runner) Release(digest string) {
	r.servers.mu.Lock()
	one := r.servers.byName[digest]
	delete(r.servers.byName, digest)
	r.servers.mu.Unlock()
	if one != nil {
		<-one.turn
		one.end()
		one.turn <- struct{}{}
	}
}

// ask puts one line to a program that stays and reads one.
func (r *Runner) ask(ctx context.Context, p *judge.Program, input []byte) judge.Reply {
	ctx, late := context.WithTimeout(ctx, r.opt.Deadline)
	defer late()
	one, err := r.servers.of(p.Digest)
	if err != nil {
		return judge.FaultReply(judge.ReasonError, err.Error())
	}
	select {
	case <-one.turn:
	case <-ctx.Done():
		return judge.FaultReply(judge.ReasonTimeout, "other decisions kept it busy until the deadline")
	}
	defer func() { one.turn <- struct{}{} }()
	if one.proc != nil && one.proc.done >= lifetime {
		one.end()
	}
	if one.proc == nil {
		if one.proc, err = r.begin(ctx, p); err != nil {
			return judge.FaultReply(judge.ReasonError, err.Error())
		}
	}
	reply, err := one.proc.turn(ctx, input, r.opt.Deadline)
	reply.Unsandboxed, reply.Stderr = !one.proc.safe, one.proc.said.take()
	if err != nil { // what comes next from it may be the answer to this question
		one.end()
	}
	r.servers.mu.Lock()
	gone := r.servers.byName[p.Digest] != one
	r.servers.mu.Unlock()
	if gone {
		one.end()
	}
	return reply
}

func (r *Runner) begin(ctx context.Context, p *judge.Program) (*process, error) {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	cmd, safe, err := r.command(life, p)
	if err != nil {
		stop()
		return nil, err
	}
	said := &lockedText{b: bounded{most: maxStderr}}
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err != nil {
		stop()
		return nil, fmt.Errorf("start the policy: %w", err)
	}
	pipe, theirs, err := os.Pipe()
	if err != nil {
		stop()
		return nil, fmt.Errorf("start the policy: %w", err)
	}
	cmd.Stdout = theirs
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		stop()
		_ = pipe.Close()
		return nil, fmt.Errorf("start the policy: %w", err)
	}
	return &process{cmd: cmd, stop: stop, in: in, pipe: pipe, out: bufio.NewReaderSize(pipe, judge.MaxAnswer+2), said: said, safe: safe}, nil
}

// turn is one question. An error means that the process can't go on.
func (p *process) turn(ctx context.Context, input []byte, deadline time.Duration) (judge.Reply, error) {
	p.done++
	if p.spoke() {
		err := errors.New("it answered before it was asked")
		return judge.FaultReply(judge.ReasonBadOutput, err.Error()), err
	}
	type answer struct {
		line []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() { // ends with the process at the latest
		line := append(bytes.ReplaceAll(input, []byte("\n"), []byte(" ")), '\n')
		if _, err := p.in.Write(line); err != nil {
			answers <- answer{err: err}
			return
		}
		got, err := p.out.ReadSlice('\n')
		answers <- answer{bytes.Clone(got), err}
	}()
	var got answer
	select {
	case got = <-answers:
	case <-ctx.Done():
		p.stop()
		_ = p.pipe.Close() // what it started may hold the other end
		_ = p.in.Close()
		<-answers
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return judge.FaultReply(judge.ReasonTimeout, fmt.Sprintf("it did not answer within %s", deadline)), ctx.Err()
		}
		return judge.FaultReply(judge.ReasonError, "the decision was given up"), ctx.Err()
	}
	switch {
	case errors.Is(got.err, bufio.ErrBufferFull) || len(got.line) > judge.MaxAnswer:
		return judge.FaultReply(judge.ReasonBadOutput, errMuch.Error()), errMuch
	case got.err != nil:
		return judge.FaultReply(judge.ReasonError, "it ended: "+got.err.Error()), got.err
	case p.out.Buffered() > 0:
		err := errors.New("it answered more than one line")
		return judge.FaultReply(judge.ReasonBadOutput, err.Error()), err
	}
	reply, err := judge.ParseReply(got.line)
	if err != nil {
		return judge.FaultReply(judge.ReasonBadOutput, err.Error()), err
	}
	return reply, nil
}

// spoke reports an answer to no question: taken for the next one's, it would
// let one action pass for another.
func (p *process) spoke() bool {
	waiting := 0
	raw, err := p.pipe.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { waiting, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return err != nil || waiting > 0 || p.out.Buffered() > 0
}

// end kills the process and waits for it.
func (s *server) end() {
	if p := s.proc; p != nil {
		s.proc = nil
		p.stop()
		_ = p.pipe.Close()
		_ = p.cmd.Wait()
	}
}
