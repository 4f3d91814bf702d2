package socket

import (
	"context"
	"os"
	osuser "os/user"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/command"
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
