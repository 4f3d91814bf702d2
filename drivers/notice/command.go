package notice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/notice"
)

const (
	maxComplaint = 300 // bytes of stderr that an error repeats
	lastWords    = time.Second
)

// run gives a message to a command: the JSON and a newline on stdin, its id in
// NOTICE_ID. Exit 0 says that it arrived.
func (s *Sender) run(ctx context.Context, n notice.Notice, m notice.Message) error {
	if s.opt.Supervisor == nil {
		return errors.New("no command can be started here")
	}
	p, err := s.opt.Supervisor.Start(cell.Spec{
		Run: "notice-" + n.Name, Argv: n.Command, Dir: s.opt.Dir, Env: map[string]string{"NOTICE_ID": m.ID},
		Limits: cell.DefaultLimits(), Wall: cell.Wall{Profile: cell.Open},
	})
	if err != nil {
		return err
	}
	defer p.CloseIO()
	var all sync.WaitGroup
	all.Go(func() {
		// A command need not read it: its exit says what came of it.
		_, _ = p.Stdin.Write(append(bytes.Clone(m.Body), '\n'))
		p.Stdin.Close()
	})
	complaint := ""
	lines := &pipe.Splitter{Max: maxComplaint, Emit: func(line []byte, _ int) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			complaint = ": " + pipe.Text(line)
		}
	}}
	all.Go(func() { _, _ = io.Copy(io.Discard, p.Stdout) })
	heard := make(chan struct{})
	all.Go(func() {
		defer close(heard)
		_, _ = io.Copy(lines, p.Stderr)
	})
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	// What it left behind goes too, and with that the pipes end.
	err = p.Stop(cell.Grace{})
	select { // what it said last may still be on its way
	case <-heard:
	case <-time.After(lastWords):
	}
	p.CloseIO()
	all.Wait()
	lines.Close()
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if exit := p.Exit(); exit.Code != 0 {
		return fmt.Errorf("the command %s%s", exit.Describe(), complaint)
	}
	return nil
}
