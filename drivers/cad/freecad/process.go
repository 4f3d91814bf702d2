package freecad

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/pipe"
)

//go:embed worker/*.py
var worker embed.FS

// process is one running worker.
type process struct {
	dir  *dir
	cmd  *exec.Cmd
	conn *jsonrpc.Conn
	said pipe.Kept // on its standard error

	ended chan struct{} // closed when nothing of it is left
	exit  error         // valid after ended
}

// launch starts a worker in a directory that it takes over. It is a plain child:
// this process is in a cell already, with a wall that is the child's too.
func launch(i Installation, memory int64, d *dir) (_ *process, err error) {
	defer func() {
		if err != nil {
			d.remove()
			err = fmt.Errorf("start FreeCAD: %w", err)
		}
	}()
	if err := os.CopyFS(d.path, worker); err != nil {
		return nil, err
	}
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, inRead.Close(), inWrite.Close())
	}
	p := &process{dir: d, ended: make(chan struct{}), said: pipe.Kept{Most: maxTail, End: true}}
	args := append([]string{"-I", "-B", filepath.Join(d.path, "worker", "server.py"), strconv.FormatInt(memory, 10)}, i.Paths...)
	p.cmd = exec.Command(i.Python, args...)
	p.cmd.Dir, p.cmd.Env, p.cmd.WaitDelay = d.path, environ(d.path), time.Second
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = inRead, outWrite, &p.said
	// The child dies with us even in the middle of an operation, in which it
	// would not see its standard input end.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	to := pipe.NewOutbox(inWrite)
	p.conn = jsonrpc.New(jsonrpc.Options{
		Send:   to.Put,
		Handle: func(r *jsonrpc.Request) { r.Fail(jsonrpc.Errorf(jsonrpc.MethodNotFound, "it only answers")) },
		Noise:  func([]byte, int) error { return errors.New("the worker wrote a line that is no message") },
	})
	started := make(chan error)
	go func() {
		// The child dies with the thread that started it: that thread waits.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		inRead.Close()
		outWrite.Close()
		if err != nil {
			started <- errors.Join(err, inWrite.Close(), outRead.Close())
			return
		}
		var pipes sync.WaitGroup
		pipes.Go(to.Run)
		pipes.Go(func() { _ = p.conn.Run(outRead) })
		started <- nil
		p.exit = p.cmd.Wait()
		to.Close()
		pipes.Wait()
		outRead.Close()
		p.dir.remove()
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// kill ends the process at once and waits until nothing of it is left.
func (p *process) kill() {
	// ESRCH: it has ended already.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// exitPatience is how long a process may outlive its standard output before
// that alone is told.
const exitPatience = 2 * time.Second

// blame says why a process that answers no more has ended.
func (p *process) blame(err error) error {
	select {
	case <-p.ended:
	case <-time.After(exitPatience):
		return err
	}
	if p.exit == nil {
		return fmt.Errorf("%w: it ended", err)
	}
	if last := last(&p.said); last != "" {
		return fmt.Errorf("%w: %w: %s", err, p.exit, last)
	}
	return fmt.Errorf("%w: %w", err, p.exit)
}

// call asks the worker and waits for its answer, or until ctx ends.
func (p *process) call(ctx context.Context, method string, params, result any) error {
	err := p.conn.Call(ctx, method, params, result)
	if errors.Is(err, jsonrpc.ErrClosed) {
		return p.blame(err)
	}
	return err
}
