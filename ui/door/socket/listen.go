package socket

import (
	"cmp"
	"context"
	"errors"
	"os"
	osuser "os/user"
	"strings"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/refusal"
	"swarmdeck/ui/serve"
	"swarmdeck/ui/term"
)

// Options of Listen.
type Options struct {
	Data    string // the data file
	Engines command.Engines
	// Open gives the engine for a command line.
	Open func(ctx context.Context, need command.Need) (*engine.Engine, error)
	// Pass has the engine that has a tenant carry a session out, for who sits at a seat
	// here, and returns what it is to end with; nil knows no other engine.
	Pass func(ctx context.Context, t *serve.Session, tenant, seat string) (code int, err error)
	// Find tells whose a process is.
	Find     func(pid int, alive func() bool) operator.Origin
	Doors    command.Doors // what a session may open
	Doctor   func(context.Context, command.Look) []command.Check
	Busy     func() error // tells who would be an engine too that this one has the file; nil tells nothing
	Troubles func(ctx context.Context, data string) ([]health.Trouble, error)
	Stuck    func() (since time.Time, why error) // see command.Env
}

// Listen lets this user's other processes in to an engine until end is called.
// An engine that can't listen is still one: others then find its data file
// locked.
func Listen(o Options) (end func() error) {
	l, err := serve.Listen(serve.SocketPath(os.Getenv, Instance(o.Data)))
	if err != nil {
		return func() error { return nil }
	}
	own := newOwn(o.Engines)
	s := serve.New(serve.Options{
		Split: command.Split, Find: o.Find, Reads: command.Repeats,
		Run: func(ctx context.Context, t *serve.Session) int {
			e := env(o, t)
			if err := own.bind(e, t); err != nil {
				return command.Report(e, t.Args, err)
			}
			return o.run(ctx, e, t)
		},
	})
	if err := s.Local(l, Name()); err != nil {
		return l.Close
	}
	return func() error {
		defer own.refusals.End()
		return s.Close()
	}
}

// env is the environment of one command line, or of one cockpit, for
// another process of this user.
func env(o Options, t *serve.Session) *command.Env {
	return &command.Env{
		Caller: core.Caller{Kind: core.Operator, Door: core.DoorCLI, Proof: Proof(), Seat: seat(t.Getenv(seatVariable))},
		Dir:    t.Dir, Stdin: t.Stdin, Stdout: t.Stdout, Stderr: t.Stderr, Getenv: t.Getenv,
		Attached: true, Busy: o.Busy, Terminal: t.Terminal, Lend: lend(t.Terminal), Doctor: o.Doctor,
		Troubles: o.Troubles, Stuck: o.Stuck, Doors: o.Doors,
		Open: func(ctx context.Context, asked command.Need) (*engine.Engine, error) {
			if Instance(asked.Data) != Instance(o.Data) {
				return nil, core.Errorf(core.InvalidInput, "data: this engine has %s, not %s", o.Data, asked.Data).With("field", "data")
			}
			return o.Open(ctx, asked)
		},
	}
}

// Name is what the system calls this user.
func Name() string {
	if u, err := osuser.Current(); err == nil {
		return u.Username
	}
	return "operator"
}

// lend has whoever came run a program on their terminal.
func lend(t *term.Remote) func(argv []string) error {
	if t == nil {
		return nil
	}
	return t.Run
}

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
