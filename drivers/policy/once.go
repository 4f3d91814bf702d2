package policy

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

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
	state, dir, err := r.ready(ctx, p)
	if err != nil {
		return judge.FaultReply(judge.ReasonError, err.Error())
	}
	var c *cell
	if state == jailed {
		defer r.cells.refill(r.id)
		c, err = r.cells.take(ctx, r.id)
	} else {
		c, err = open(bareCommand(argv(p, dir)), nil)
	}
	if err != nil {
		return judge.FaultReply(judge.ReasonError, err.Error())
	}
	defer c.kill(nil)
	defer context.AfterFunc(ctx, func() { c.kill(context.Cause(ctx)) })()
	err = c.run(append([]string{dir}, argv(p, dir)...), input)
	reply := r.reply(c, err)
	reply.Unsandboxed = state != jailed
	return reply
}

// reply makes an answer, or a fault, of how a program ended.
func (r *Runner) reply(c *cell, err error) judge.Reply {
	words := sanitised(c.said.kept)
	fault := func(reason, why string) judge.Reply {
		f := judge.FaultReply(reason, why)
		f.Stderr = words
		return f
	}
	cause := context.Cause(c.life)
	switch {
	case c.out.full:
		return fault(judge.ReasonBadOutput, errMuch.Error())
	case errors.Is(cause, context.DeadlineExceeded):
		return fault(judge.ReasonTimeout, fmt.Sprintf("it did not answer within %s", r.opt.Deadline))
	case cause != nil:
		return fault(judge.ReasonError, "the decision was given up: "+cause.Error())
	case err != nil:
		why := "it failed: " + err.Error()
		if last := lastLine(words); last != "" {
			why += ": " + last
		}
		return fault(judge.ReasonError, why)
	}
	reply, err := judge.ParseReply(c.out.kept)
	if err != nil {
		return fault(judge.ReasonBadOutput, err.Error())
	}
	reply.Stderr = words
	return reply
}

// ready says how programs run here, and puts this one where it can be read.
func (r *Runner) ready(ctx context.Context, p *judge.Program) (state int, dir string, err error) {
	state, why := r.jail(ctx)
	if state == 0 {
		return 0, "", errors.New(why)
	}
	dir, err = r.place(p)
	return state, dir, err
}

// argv is a program's command line.
func argv(p *judge.Program, dir string) []string {
	return append(slices.Clone(p.Interpreter), filepath.Join(dir, fileName))
}

// jailCommand makes the process that jails itself; args go to Enter.
func (r *Runner) jailCommand(id identity, args []string) func(context.Context) *exec.Cmd {
	return func(life context.Context) *exec.Cmd {
		argv := append(slices.Clone(r.opt.Jail), args...)
		cmd := exec.CommandContext(life, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env, cmd.WaitDelay, cmd.SysProcAttr = "/", environment, waitDelay, prison(id)
		return cmd
	}
}

// bareCommand makes a process without a jail, in a group of its own.
func bareCommand(argv []string) func(context.Context) *exec.Cmd {
	return func(life context.Context) *exec.Cmd {
		cmd := exec.CommandContext(life, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env, cmd.WaitDelay = "/", environment, waitDelay
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		return cmd
	}
}
