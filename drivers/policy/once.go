package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/judge"
)

// errMuch ends a program that answers more than it may.
var errMuch = fmt.Errorf("it answered more than %d bytes", judge.MaxAnswer)

// Decide implements judge.Programs.
func (r *Runner) Decide(ctx context.Context, p *judge.Program, input []byte) judge.Reply {
	if p.Serve {
		return r.ask(ctx, p, input)
	}
	ctx, late := context.WithTimeout(ctx, r.opt.Deadline)
	defer late()
	proc, jailed, err := r.begin(ctx, p)
	if err != nil {
		return judge.FaultReply(judge.ReasonError, err.Error())
	}
	o := follow(ctx, proc, input)
	reply := r.reply(o)
	reply.Unsandboxed = !jailed
	return reply
}

// outcome is how a program ended.
type outcome struct {
	answer, said bounded
	cause        error // we ended it for this
	exit         cell.Exit
}

// follow asks a program once and waits for its end.
func follow(ctx context.Context, proc *cell.Process, input []byte) (o outcome) {
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	o.answer = bounded{most: judge.MaxAnswer, over: func() { give(errMuch) }}
	o.said = bounded{most: maxStderr}
	var all sync.WaitGroup
	all.Go(func() { // ends with the process at the latest
		_, _ = proc.Stdin.Write(input)
		_ = proc.Stdin.Close()
	})
	all.Go(func() { _, _ = io.Copy(&o.answer, proc.Stdout) })
	all.Go(func() { _, _ = io.Copy(&o.said, proc.Stderr) })
	select {
	case <-proc.Done():
	case <-ctx.Done():
		o.cause = context.Cause(ctx)
	}
	_ = proc.Stop(cell.Grace{Interrupt: -1, Terminate: -1})
	all.Wait()
	proc.CloseIO()
	o.exit = proc.Exit()
	return o
}

// reply makes an answer, or a fault, of how a program ended.
func (r *Runner) reply(o outcome) judge.Reply {
	words := sanitised(o.said.kept)
	fault := func(reason, why string) judge.Reply {
		f := judge.FaultReply(reason, why)
		f.Stderr = words
		return f
	}
	switch {
	case o.answer.full:
		return fault(judge.ReasonBadOutput, errMuch.Error())
	case errors.Is(o.cause, context.DeadlineExceeded):
		return fault(judge.ReasonTimeout, fmt.Sprintf("it did not answer within %s", r.opt.Deadline))
	case o.cause != nil:
		return fault(judge.ReasonError, "the decision was given up: "+o.cause.Error())
	case o.exit.Code != 0:
		why := "it failed: it " + o.exit.Describe()
		if last := lastLine(words); last != "" {
			why += ": " + last
		}
		return fault(judge.ReasonError, why)
	}
	reply, err := judge.ParseReply(o.answer.kept)
	if err != nil {
		return fault(judge.ReasonBadOutput, err.Error())
	}
	reply.Stderr = words
	return reply
}

// argv is a program's command line.
func argv(p *judge.Program, dir string) []string {
	return append(slices.Clone(p.Interpreter), filepath.Join(dir, fileName))
}
