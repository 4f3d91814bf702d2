package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/judge"
)

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
