package cell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ChildSpec says what a process that is in a cell starts beside itself.
type ChildSpec struct {
	Argv []string // the first is a path
	Dir  string
	Env  []string
	// Stdin is nil for nothing. Stdout and Stderr are files, which are handed on,
	// or take what is written; nil is nobody. The files are their caller's to close.
	Stdin          *os.File
	Stdout, Stderr io.Writer
}

// Child is a process that one in a cell has started, with the wall that it has
// itself and what it starts in its group. It dies with this process.
type Child struct {
	pid  int
	exit Exit
	done chan struct{} // closed when its group is gone and its output taken

	mu     sync.Mutex
	reaped bool // its number may be another's
}

// childPatience is how long output is taken after the end of a child's group, of
// what has left the group.
const childPatience = time.Second

// StartChild starts a process of one's own: a plain one, for who is in a cell
// already. What the engine starts has a cell of its own (Supervisor).
func StartChild(spec ChildSpec) (*Child, error) {
	if len(spec.Argv) == 0 {
		return nil, fmt.Errorf("start a child: no program: %w", os.ErrInvalid)
	}
	var theirs, ours files
	defer func() { theirs.close() }()
	var copying sync.WaitGroup
	hand := func(to io.Writer) (*os.File, error) {
		if f, is := to.(*os.File); is && f != nil {
			return f, nil
		}
		if to == nil {
			f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			theirs = append(theirs, f)
			return f, err
		}
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		theirs, ours = append(theirs, w), append(ours, r)
		copying.Go(func() { _, _ = io.Copy(struct{ io.Writer }{to}, r) })
		return w, nil
	}
	var in io.Writer
	if spec.Stdin != nil {
		in = spec.Stdin
	}
	var given []*os.File
	for _, to := range []io.Writer{in, spec.Stdout, spec.Stderr} {
		f, err := hand(to)
		if err != nil {
			ours.close()
			copying.Wait()
			return nil, fmt.Errorf("start a child: %w", err)
		}
		given = append(given, f)
	}
	c := &Child{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The child dies with the thread that started it: that thread waits.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := os.StartProcess(spec.Argv[0], spec.Argv, &os.ProcAttr{
			Dir: spec.Dir, Env: spec.Env, Files: given, Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		})
		if err == nil {
			c.pid = p.Pid
		}
		started <- err
		if err == nil {
			c.wait(p)
		}
		late := time.AfterFunc(childPatience, ours.close)
		copying.Wait()
		late.Stop()
		ours.close()
		close(c.done)
	}()
	if err := <-started; err != nil {
		theirs.close()
		<-c.done
		return nil, fmt.Errorf("start a child: %w", err)
	}
	return c, nil
}

// wait reaps the child, and ends what it leaves in its group while the number is
// nobody else's.
func (c *Child) wait(p *os.Process) {
	for errors.Is(unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = syscall.Kill(-c.pid, syscall.SIGKILL)
	c.reaped, c.exit = true, Exit{Code: -1}
	if state, err := p.Wait(); err == nil {
		if ws, is := state.Sys().(syscall.WaitStatus); is {
			c.exit = exitOf(ws)
		}
	}
}

// PID is the child's process id.
func (c *Child) PID() int { return c.pid }

// Done is closed when nothing of the child is left, and its output taken.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit waits for that, and tells how it ended.
func (c *Child) Exit() Exit {
	<-c.done
	return c.exit
}

// Kill ends the child with its group at once, and waits.
func (c *Child) Kill() {
	c.mu.Lock()
	if !c.reaped {
		_ = syscall.Kill(-c.pid, syscall.SIGKILL)
	}
	c.mu.Unlock()
	<-c.done
}

// RunChild starts a child, waits for its end and tells how it ended. The end of
// ctx ends it at once, and is the error then.
func RunChild(ctx context.Context, spec ChildSpec) (Exit, error) {
	c, err := StartChild(spec)
	if err != nil {
		return Exit{}, err
	}
	select {
	case <-c.Done():
	case <-ctx.Done():
		c.Kill()
		return c.Exit(), context.Cause(ctx)
	}
	return c.Exit(), nil
}

// Look finds a program in the PATH.
func Look(name string) (path string, err error) { return find(name, nil, "/") }
