package policy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/judge"
)

// process is one life of a program that stays.
type process struct {
	proc *cell.Process
	out  *bufio.Reader
	said *pipe.Kept // beside its answers, since the last one
	safe bool
	done int           // questions
	took time.Duration // for them

	reading sync.WaitGroup
	once    sync.Once
}

// tired reports a process that has done enough.
func (p *process) tired() bool { return p.done >= lifetime || p.took >= worked }

// errEnded means that a process ended instead of an answer.
var errEnded = errors.New("it ended")

// stay starts a program that stays.
func (r *Runner) stay(ctx context.Context, p *judge.Program) (*process, error) {
	spec, jailed, err := r.plan(ctx, p)
	if err != nil {
		return nil, err
	}
	proc, err := r.opt.Supervisor.Start(spec)
	if err != nil {
		return nil, err
	}
	said := &pipe.Kept{Most: maxStderr}
	one := &process{proc: proc, out: bufio.NewReaderSize(proc.Stdout, judge.MaxAnswer+2), said: said, safe: jailed}
	one.reading.Go(func() { _, _ = io.Copy(said, proc.Stderr) })
	return one, nil
}

// turn is one question. An error means that the process can't go on.
func (p *process) turn(ctx context.Context, input []byte, deadline time.Duration) (judge.Reply, error) {
	p.done++
	began := time.Now()
	defer func() { p.took += time.Since(began) }()
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
		if _, err := p.proc.Stdin.Write(line); err != nil {
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
		p.end()
		<-answers
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return judge.FaultReply(judge.ReasonTimeout, fmt.Sprintf("it did not answer within %s", deadline)), ctx.Err()
		}
		return judge.FaultReply(judge.ReasonError, "the decision was given up"), ctx.Err()
	}
	switch {
	case errors.Is(got.err, bufio.ErrBufferFull) || len(got.line) > judge.MaxAnswer:
		return judge.FaultReply(judge.ReasonBadOutput, errMuch.Error()), errMuch
	case got.err != nil && len(got.line) > 0:
		return judge.FaultReply(judge.ReasonBadOutput, "it ended within a line"), got.err
	case got.err != nil:
		return judge.FaultReply(judge.ReasonError, errEnded.Error()), errEnded
	case p.spoke():
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
	raw, err := p.proc.Stdout.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { waiting, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return err != nil || waiting > 0 || p.out.Buffered() > 0
}

// end kills the process and waits for it.
func (p *process) end() {
	p.once.Do(func() {
		_ = p.proc.Stop(cell.Grace{Interrupt: -1, Terminate: -1})
		p.proc.CloseIO()
		p.reading.Wait()
	})
}

// errMuch ends a program that answers more than it may.
var errMuch = fmt.Errorf("it answered more than %d bytes", judge.MaxAnswer)

func (r *Runner) Decide(ctx context.Context, p *judge.Program, input []byte) judge.Reply {
	if p.Serve {
		return r.ask(ctx, p, input)
	}
	ctx, late := context.WithTimeout(ctx, r.opt.Deadline)
	defer late()
	spec, jailed, err := r.plan(ctx, p)
	if err != nil {
		return judge.FaultReply(judge.ReasonError, err.Error())
	}
	answer, said := pipe.Kept{Most: judge.MaxAnswer, Over: errMuch}, pipe.Kept{Most: maxStderr}
	exit, err := r.opt.Supervisor.Run(ctx, spec, bytes.NewReader(input), &answer, &said)
	words := sanitised(said.Bytes())
	var reply judge.Reply
	switch {
	case errors.Is(err, errMuch):
		reply = judge.FaultReply(judge.ReasonBadOutput, errMuch.Error())
	case errors.Is(err, context.DeadlineExceeded):
		reply = judge.FaultReply(judge.ReasonTimeout, fmt.Sprintf("it did not answer within %s", r.opt.Deadline))
	case err != nil && ctx.Err() != nil:
		reply = judge.FaultReply(judge.ReasonError, "the decision was given up: "+err.Error())
	case err != nil:
		reply = judge.FaultReply(judge.ReasonError, err.Error())
	case exit.Code != 0:
		why := "it failed: it " + exit.Describe()
		if last := lastLine(words); last != "" {
			why += ": " + last
		}
		reply = judge.FaultReply(judge.ReasonError, why)
	default:
		if reply, err = judge.ParseReply(answer.Bytes()); err != nil {
			reply = judge.FaultReply(judge.ReasonBadOutput, err.Error())
		}
	}
	reply.Stderr, reply.Unsandboxed = words, !jailed
	return reply
}

// argv is a program's command line.
func argv(p *judge.Program, dir string) []string {
	return append(slices.Clone(p.Interpreter), filepath.Join(dir, fileName))
}

// fileName is the policy's file in its directory, DIRECTORY/DIGEST/policy.
const fileName = "policy"

// dirName begins the directory of a runner's files; its process id follows.
const dirName = "swarmdeck-policies-"

// makeDir makes the directory of this runner's files, and removes those of
// engines that died. The caller holds mu.
func (r *Runner) makeDir() error {
	if r.dir != "" {
		if _, err := os.Stat(r.dir); err == nil {
			return nil
		}
	}
	old, _ := filepath.Glob(filepath.Join(r.opt.Dir, dirName+"*"))
	for _, dir := range old {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirName), "-")
		n, err := strconv.Atoi(pid)
		if err == nil && errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir) // another user's stays
		}
	}
	dir, err := os.MkdirTemp(r.opt.Dir, fmt.Sprintf("%s%d-", dirName, os.Getpid()))
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("make a directory for policies: %w", err)
	}
	r.dir = dir
	return nil
}

// place puts a program's source where the jail can read it, and returns its
// directory. A file that was tampered with is written anew.
func (r *Runner) place(p *judge.Program) (dir string, err error) {
	r.mu.Lock()
	dir = filepath.Join(r.dir, p.Digest) // r.dir was made before
	r.mu.Unlock()
	file := filepath.Join(dir, fileName)
	if there, err := os.ReadFile(file); err == nil && bytes.Equal(there, p.Source) {
		return dir, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return "", errClosed
	}
	err = os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.Chmod(dir, 0o755) // whatever the umask
	}
	if err != nil {
		return "", fmt.Errorf("place the policy: %w", err)
	}
	draft, err := os.CreateTemp(r.dir, "draft-")
	if err != nil {
		return "", fmt.Errorf("place the policy: %w", err)
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.Write(p.Source)
	if err == nil {
		err = draft.Chmod(0o555)
	}
	if end := draft.Close(); err == nil {
		err = end
	}
	if err == nil {
		err = os.Rename(draft.Name(), file)
	}
	if err != nil {
		return "", fmt.Errorf("place the policy: %w", err)
	}
	return dir, nil
}
