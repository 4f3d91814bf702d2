package exec

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
)

const (
	// drainPatience is how long output is still read after the first process
	// ended while something else holds the pipe.
	drainPatience = time.Second
	// afterGrace is what processes left behind get between SIGTERM and SIGKILL.
	afterGrace = 300 * time.Millisecond
)

// command is a process that is fed, read to its end, and ended when asked,
// with all that it leaves running. Its user closes done once outcome is set.
type command struct {
	stdin   string
	grace   cell.Grace
	pins    *pin.Set // released when the command is over
	proc    *cell.Process
	mask    *secret.Mask
	cancel  chan stop // one slot: the first one counts
	done    chan struct{}
	outcome task.Outcome // valid after done
}

// stop asks a command to end.
type stop struct {
	reason string
	grace  cell.Grace
}

func newCommand(stdin string, grace cell.Grace, pins *pin.Set) command {
	return command{stdin: stdin, grace: grace, pins: pins, cancel: make(chan stop, 1), done: make(chan struct{})}
}

// start begins the process with what its environment refers to; where that
// fails, the outcome says so and the command is over.
func (c *command) start(ctx context.Context, sup *cell.Supervisor, secrets secret.Resolver, tenant string, spec cell.Spec) bool {
	var err error
	if spec.Env, c.mask, err = secrets(ctx, tenant, spec.Env); err == nil {
		spec.Keep = &cell.Keep{Stdout: true, Mask: c.mask}
		c.proc, err = sup.Start(spec)
	}
	if err != nil {
		c.outcome = failed(startError(err))
		c.pins.Release()
		close(c.done)
		return false
	}
	return true
}

func (c *command) Done() <-chan struct{} { return c.done }
func (c *command) Outcome() task.Outcome { <-c.done; return c.outcome }

func (c *command) Cancel(reason string) { c.end(reason, c.grace) }

func (c *command) end(reason string, grace cell.Grace) {
	select {
	case c.cancel <- stop{reason, grace}:
	default:
	}
}

func (c *command) Pause(ctx context.Context) error {
	if c.proc == nil {
		return errOver
	}
	return c.proc.Pause(ctx)
}

func (c *command) Resume(ctx context.Context) error {
	if c.proc == nil {
		return errOver
	}
	return c.proc.Resume(ctx)
}

var errOver = core.Errorf(core.Conflict, "the command has ended")

// fate is how a command came to its end.
type fate struct {
	cancelled bool
	reason    string
	stopErr   error // processes that could not be ended
}

// follow feeds and reads the command until it, and everything it left
// running, has ended. Stdout and stderr must not block for ever: what they
// leave unread holds the command up. An error of theirs ends it.
func (c *command) follow(ctx context.Context, stdout, stderr io.Writer) (f fate) {
	defer c.pins.Release()
	go c.feed()
	drained := core.Side(func() { c.pour(c.proc.Stdout, stdout) }, func() { c.pour(c.proc.Stderr, stderr) })
	grace := c.grace
	select {
	case <-c.proc.Done():
	case s := <-c.cancel:
		f.cancelled, f.reason, grace = true, s.reason, s.grace
	case <-ctx.Done():
		f.cancelled, f.reason = true, "the engine is closing"
	}
	if f.cancelled {
		f.stopErr = c.proc.Stop(grace)
	} else {
		select {
		case <-drained:
		case <-c.cancel: // the work is done, only what it left is cut short
		case <-ctx.Done():
		case <-time.After(drainPatience):
		}
		f.stopErr = c.proc.Stop(cell.Grace{Interrupt: -1, Terminate: afterGrace})
	}
	// Nothing is left to write: what is in the pipes is all there will be.
	// Only a process that not even SIGKILL could end may keep one open.
	core.Within(drained, drainPatience)
	c.proc.CloseIO()
	<-drained
	return f
}

// feed writes stdin and closes the pipe; a command that does not read it
// breaks the pipe by ending.
func (c *command) feed() {
	_, _ = io.WriteString(c.proc.Stdin, c.stdin)
	c.proc.Stdin.Close()
}

// pour reads a stream to its end.
func (c *command) pour(from *os.File, into io.Writer) {
	to := c.mask.Writer(into)
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				c.end(err.Error(), cell.Grace{Interrupt: -1, Terminate: afterGrace})
			}
		}
		if err != nil {
			return
		}
	}
}

// exit fills in how the process ended.
func (c *command) exit(f fate, out *runOutput) {
	if f.stopErr != nil && !c.proc.Ended() {
		out.RC, out.DurationMS = -1, time.Since(c.proc.Began()).Milliseconds()
		return
	}
	exit := c.proc.Exit()
	out.RC, out.DurationMS = exit.Code, exit.Duration.Milliseconds()
	if exit.Signal != 0 {
		out.Signal = unix.SignalName(exit.Signal)
	}
	if exit.Overran > 0 {
		out.overran = exit.Describe()
	}
}

func (f fate) cancelError() *task.Error {
	return &task.Error{Code: "cancelled", Message: core.ClipTo(pipe.Text([]byte(f.reason)), keeper.MaxMessage)}
}

// note adds to an error what could not be ended.
func (f fate) note(e *task.Error) {
	if f.stopErr != nil && e != nil {
		e.Message = core.ClipTo(e.Message+"; "+f.stopErr.Error(), keeper.MaxMessage)
	}
}
