package socket

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/refusal"
	"swarmdeck/ui/serve"
)

// own are the callers at the socket that the engine started, or that come from
// what it started: no persons, whatever they call themselves.
type own struct{ refusals refusal.Operators }

// maxTried bounds the commands of which the log is told at once that one of them
// tried it.
const maxTried = 200

func newOwn(engines command.Engines) *own {
	o := &own{refusals: refusal.Operators{Most: maxTried}}
	ctx := context.Background()
	o.refusals.Tell = func(by core.Caller, cause error) {
		var tried attempt
		errors.As(cause, &tried)
		eng, err := engines.Of(ctx, by.Tenant)
		if err != nil {
			return
		}
		_ = eng.Operators.RefusedProcess(ctx, by, tried.from, tried.command, cause) // it is refused all the same
	}
	o.refusals.TellAgain = func(by core.Caller, a operator.Again) {
		if eng, err := engines.Of(ctx, by.Tenant); err == nil {
			_ = eng.Operators.RefusedProcessAgain(ctx, by, a)
		}
	}
	return o
}

// attempt is a refusal with what the log says of it besides.
type attempt struct {
	error
	from    operator.Origin
	command string // without its arguments
}

func (a attempt) Unwrap() error { return a.error }

// bind gives a session the rights of who calls. A process of an agent or a task
// is that agent or task, in its tenant; it names no file, because the engine
// would open it. One of which no more is known than that it is the engine's is
// refused.
func (o *own) bind(env *command.Env, t *serve.Session) error {
	from := t.Who.Origin
	if from.Kind == operator.Person {
		return nil
	}
	by := core.Caller{
		Kind: core.Agent, Door: core.DoorCLI, Tenant: from.Run.Tenant,
		Name: cmp.Or(from.Run.Who(), from.Run.Name, "unknown"),
	}
	line := command.Describe(t.Args).Path
	env.Refused = func(by core.Caller, err error) { o.refusals.Refused(by, attempt{err, from, line}) }
	what, why := cmp.Or(line, "the cockpit"), from.Why
	switch {
	case from.Kind != operator.OfRun:
	case from.Run.Tenant == "" || from.Run.Who() == "":
		why = "and this process is one of " + by.Name + ", which is no agent and no task"
	case command.Completing(t.Args):
		what, why = "completion", "and this process is one of "+by.Name
	default:
		env.Caller, env.Role, env.Remote, env.Doors = by, command.Viewer, true, command.Doors{}
		return nil
	}
	err := core.Errorf(core.Denied, "%s: only a person may, %s", what, cmp.Or(why, "and whose process this is can't be told"))
	env.Refused(by, err)
	return err
}

// seatVariable hands a seat to the engine that carries out a line for this process.
const seatVariable = "SWARMDECK_SEAT"

// maxSeat bounds a seat, in bytes.
const maxSeat = 64

// Seat is where whoever started this process sits: its terminal, and the machine that
// this one was entered from; "" where there is no terminal.
func Seat() string {
	at, err := os.Readlink("/proc/self/fd/0")
	if err != nil || !strings.HasPrefix(at, "/dev/pts/") && !strings.HasPrefix(at, "/dev/tty") {
		return ""
	}
	if from, _, ok := strings.Cut(os.Getenv("SSH_CONNECTION"), " "); ok {
		at += " from " + from
	}
	return seat(at)
}

// seat is what a process of this user says of its seat, fit for a record.
func seat(said string) string {
	if !core.Printable(said) {
		return ""
	}
	return core.ClipTo(said, maxSeat)
}
