package socket

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/command"
	"swarmdeck/ui/serve"
)

// OtherEngineError is that another engine of the same database has a tenant.
type OtherEngineError struct{ Tenant string }

func (e *OtherEngineError) Error() string { return e.Tenant + " is with another engine" }

// Unwrap has a command end without a word: its line is carried out there.
func (e *OtherEngineError) Unwrap() error { return &command.ExitError{Code: command.ExitElsewhere} }

// run carries a line out here, or has the engine that has its tenant do so for a person
// of this machine.
func (o Options) run(ctx context.Context, e *command.Env, t *serve.Session) int {
	var other *OtherEngineError
	open := e.Open
	e.Open = func(ctx context.Context, need command.Need) (*engine.Engine, error) {
		eng, err := open(ctx, need)
		errors.As(err, &other)
		return eng, err
	}
	t.Line = core.Join(without(t.Args, "--data"))
	for end := time.Now().Add(command.OtherPatience); ; {
		line := *e
		running, over, stop := line.Following(ctx, !command.Repeats(t.Args))
		code := command.Run(running, &line, t.Args)
		gone := over()
		stop()
		if gone && code != command.ExitOK && ctx.Err() == nil { // as when the engine's process ends: who reads looks for the next
			return serve.Gone
		}
		if code != command.ExitElsewhere || other == nil {
			return code
		}
		if o.Pass == nil || t.Who.Origin.Kind != operator.Person {
			return command.Report(e, t.Args, core.Errorf(core.Unavailable, "%v", other))
		}
		code, err := o.Pass(ctx, t, other.Tenant, seat(t.Getenv(seatVariable)))
		switch {
		case err == nil || ctx.Err() != nil || code == serve.Gone:
			return code
		case !errors.Is(err, serve.ErrUnbegun) || time.Now().After(end):
			return command.Report(e, t.Args, core.Errorf(core.Unavailable, "%v: %v", other, err))
		}
		time.Sleep(otherPoll) // until it is taken over
	}
}

const otherPoll = 100 * time.Millisecond

// without is a line without a flag that has a value: the path of the data means nothing
// at another machine.
func without(args []string, flag string) (out []string) {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--":
			return append(out, args[i:]...)
		case args[i] == flag:
			i++
		case !strings.HasPrefix(args[i], flag+"="):
			out = append(out, args[i])
		}
	}
	return slices.Clip(out)
}
