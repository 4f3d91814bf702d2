package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

const (
	// beatEvery renews the lease four times a second: it is lost after one.
	beatEvery = 250 * time.Millisecond
	// drainPatience is how long output is still read after the first process
	// ended while something else holds the pipe.
	drainPatience = time.Second
	// afterGrace is what processes left behind get between SIGTERM and SIGKILL.
	afterGrace = 300 * time.Millisecond
)

// runOutput is the result of an exec.run task.
type runOutput struct {
	RC              int    `json:"rc"`
	Signal          string `json:"signal,omitempty"`
	Stdout          string `json:"stdout"`
	Stderr          string `json:"stderr"`
	DurationMS      int64  `json:"duration_ms"`
	StdoutTruncated bool   `json:"stdout_truncated,omitzero"`
	StdoutBytes     int64  `json:"stdout_bytes,omitzero"`
	Spill           string `json:"spill,omitempty"`
	StderrTruncated bool   `json:"stderr_truncated,omitzero"`
	StderrBytes     int64  `json:"stderr_bytes,omitzero"`
	SpillStderr     string `json:"spill_stderr,omitempty"`
	SpillError      string `json:"spill_error,omitempty"`
}

// work is one running command of a task.
type work struct {
	job     swarm.Job
	in      runInput
	grace   Grace
	proc    *Process
	capture *capture
	cancel  chan string // one slot: the first reason counts
	done    chan struct{}
	outcome swarm.Outcome // valid after done
}

var _ swarm.Work = (*work)(nil)

func (w *work) Done() <-chan struct{}  { return w.done }
func (w *work) Outcome() swarm.Outcome { <-w.done; return w.outcome }

func (w *work) Cancel(reason string) {
	select {
	case w.cancel <- reason:
	default:
	}
}

func (w *work) Pause(ctx context.Context) error {
	if w.proc == nil {
		return errOver
	}
	return w.proc.Pause(ctx)
}

func (w *work) Resume(ctx context.Context) error {
	if w.proc == nil {
		return errOver
	}
	return w.proc.Resume(ctx)
}

var errOver = core.Errorf(core.Conflict, "the command has ended")

// run follows the command to its end and past it.
func (w *work) run(ctx context.Context) {
	defer close(w.done)
	defer w.beat()()
	go w.feed()
	drained := w.drain()

	var reason string
	cancelled := false
	var stopErr error
	select {
	case <-w.proc.Done():
	case reason = <-w.cancel:
		cancelled = true
	case <-ctx.Done():
		cancelled, reason = true, "the engine is closing"
	}
	if cancelled {
		stopErr = w.proc.Stop(w.grace)
	} else {
		select {
		case <-drained:
		case <-w.cancel: // the work is done, only what it left is cut short
		case <-ctx.Done():
		case <-time.After(drainPatience):
		}
		stopErr = w.proc.Stop(Grace{Interrupt: -1, Terminate: afterGrace})
	}
	// Nothing is left to write: what is in the pipes is all there will be.
	// Only a process that not even SIGKILL could end may keep one open.
	select {
	case <-drained:
	case <-time.After(drainPatience):
	}
	w.proc.CloseIO()
	<-drained
	w.capture.close()
	w.outcome = w.judge(cancelled, reason, stopErr)
}

// beat renews the lease until the returned function is called, which waits
// for the last one to be over.
func (w *work) beat() (stop func()) {
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			w.job.Beat()
			select {
			case <-tick.C:
			case <-end:
				return
			}
		}
	})
	return func() { close(end); wg.Wait() }
}

// feed writes the input's stdin and closes the pipe; a command that does not
// read it breaks the pipe by ending.
func (w *work) feed() {
	_, _ = io.WriteString(w.proc.Stdin, w.in.Stdin)
	w.proc.Stdin.Close()
}

// drain reads both streams to their ends.
func (w *work) drain() <-chan struct{} {
	log := newTaskLog(w.job.Log)
	var wg sync.WaitGroup
	wg.Go(func() { w.read(0, w.proc.Stdout, "INFO", log) })
	wg.Go(func() { w.read(1, w.proc.Stderr, "WARN", log) })
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}

func (w *work) read(n int, from *os.File, level string, log *taskLog) {
	lines := &pipe.Splitter{Max: maxLogLine, Emit: func(line []byte, cut int) { log.line(level, line, cut) }}
	defer lines.Close()
	buf := make([]byte, 32<<10)
	for {
		k, err := from.Read(buf)
		if k > 0 {
			w.capture.write(n, buf[:k])
			_, _ = lines.Write(buf[:k])
		}
		if err != nil {
			return
		}
	}
}

// judge makes the outcome of how the command ended.
func (w *work) judge(cancelled bool, reason string, stopErr error) swarm.Outcome {
	var out runOutput
	w.capture.report(&out)
	if stopErr == nil || w.proc.reaped() {
		exit := w.proc.Exit()
		out.RC, out.DurationMS = exit.Code, exit.Duration.Milliseconds()
		if exit.Signal != 0 {
			out.Signal = unix.SignalName(exit.Signal)
		}
	} else {
		out.RC, out.DurationMS = -1, time.Since(w.proc.began).Milliseconds()
	}
	o := swarm.Outcome{Status: swarm.Succeeded, Output: core.MustEncode(out), Text: out.text()}
	switch {
	case cancelled:
		o.Status, o.Error = swarm.Cancelled, &swarm.TaskError{Code: "cancelled", Message: pipe.Clip(pipe.Text([]byte(reason)), maxMessage)}
	case out.Signal != "" || out.RC != 0:
		o.Status, o.Error = swarm.Failed, out.failure()
	}
	if stopErr != nil && o.Error != nil {
		o.Error.Message = pipe.Clip(o.Error.Message+"; "+stopErr.Error(), maxMessage)
	}
	return o
}

func (r runOutput) text() string {
	if r.Stderr == "" {
		return r.Stdout
	}
	return r.Stdout + "\n" + r.Stderr
}

func (r runOutput) failure() *swarm.TaskError {
	e := &swarm.TaskError{Code: "exit_nonzero", Message: fmt.Sprintf("exit status %d", r.RC)}
	switch r.Signal {
	case "":
		if last := lastLine(r.Stderr); last != "" {
			e.Message += ": " + last
		}
	case "SIGXCPU", "SIGXFSZ":
		e.Code, e.Message = "limit_exceeded", "ended by "+r.Signal+": a resource limit of the runner"
	default:
		e.Code, e.Message, e.Retryable = "killed", "ended by "+r.Signal, true
	}
	e.Message = pipe.Clip(e.Message, 512)
	return e
}

func isFormat(err error) bool {
	return errors.Is(err, syscall.ENOEXEC) || errors.Is(err, syscall.E2BIG) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR)
}
