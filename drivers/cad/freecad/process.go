package freecad

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
)

//go:embed worker/*.py
var worker embed.FS

// process is one running worker.
type process struct {
	dir   *dir
	child *cell.Child
	conn  *jsonrpc.Conn
	said  pipe.Kept // on its standard error

	ended chan struct{} // closed when nothing of it is left
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
	argv := append([]string{i.Python, "-I", "-B", filepath.Join(d.path, "worker", "server.py"), strconv.FormatInt(memory, 10)}, i.Paths...)
	to := pipe.NewOutbox(inWrite)
	p.conn = jsonrpc.New(jsonrpc.Options{
		Send:   to.Put,
		Handle: func(r *jsonrpc.Request) { r.Fail(jsonrpc.Errorf(jsonrpc.MethodNotFound, "it only answers")) },
		Noise:  func([]byte, int) error { return errors.New("the worker wrote a line that is no message") },
	})
	// It dies with us even in the middle of an operation, in which it would not
	// see its standard input end.
	p.child, err = cell.StartChild(cell.ChildSpec{
		Argv: argv, Dir: d.path, Env: environ(d.path), Stdin: inRead, Stdout: outWrite, Stderr: &p.said,
	})
	inRead.Close()
	outWrite.Close()
	if err != nil {
		return nil, errors.Join(err, inWrite.Close(), outRead.Close())
	}
	var pipes sync.WaitGroup
	pipes.Go(to.Run)
	pipes.Go(func() { _ = p.conn.Run(outRead) })
	go func() {
		<-p.child.Done()
		to.Close()
		pipes.Wait()
		outRead.Close()
		p.dir.remove()
		close(p.ended)
	}()
	return p, nil
}

// kill ends the process at once and waits until nothing of it is left.
func (p *process) kill() {
	p.child.Kill()
	<-p.ended
}

// exitPatience is how long a process may outlive its standard output before
// that alone is told.
const exitPatience = 2 * time.Second

// blame says why a process that answers no more has ended.
func (p *process) blame(err error) error {
	if !core.Within(p.ended, exitPatience) {
		return err
	}
	exit := p.child.Exit()
	if exit.Code == 0 {
		return fmt.Errorf("%w: it ended", err)
	}
	if last := last(&p.said); last != "" {
		return fmt.Errorf("%w: it %s: %s", err, exit.Describe(), last)
	}
	return fmt.Errorf("%w: it %s", err, exit.Describe())
}

// call asks the worker and waits for its answer, or until ctx ends.
func (p *process) call(ctx context.Context, method string, params, result any) error {
	err := p.conn.Call(ctx, method, params, result)
	if errors.Is(err, jsonrpc.ErrClosed) {
		return p.blame(err)
	}
	return err
}

// maxTail is how much of what a process says is kept, in bytes: its end.
const maxTail = 4096

// last is the last line of what a process said, which of a Python error says
// what it was.
func last(said *pipe.Kept) string {
	lines := strings.Split(strings.TrimSpace(pipe.Text(said.Bytes())), "\n")
	return core.OneLine(strings.TrimSpace(lines[len(lines)-1]), 300)
}
