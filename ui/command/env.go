// Package command is the one tree of commands behind every door: argv, the
// cockpit's palette, script lines, completion and help. A command declares its
// effect and least role once; confirmations, --read-only and help follow from
// that declaration.
//
// A tree is made for each Run and dropped with it; nothing is kept between
// runs, so any number may run at once.
package command

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os/user"
	"path/filepath"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/safeopen"
	"swarmdeck/ui/term"
)

// Env is what a command runs in. Run does not change it; a copy with another
// Tenant, Door or writer is another, independent environment.
type Env struct {
	// Caller is who asks. Tenant "" picks the default tenant, Name "" the OS
	// user of Proof. Doors with an authenticated user set Name, and --as is refused
	// unless Door is cli or script. Of kind agent it is a process of that agent
	// or task: Name and Tenant stand, and it may look at what agents may.
	Caller core.Caller
	// As and Key are --as and --key for every line that names none.
	As, Key string
	// Role is what the door grants; "" is Admin.
	Role Role
	// ReadOnly is --read-only for every line.
	ReadOnly bool
	// Dir is the base of relative paths: @file, --out, swarm files, agent dirs.
	Dir    string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// ErrorObjects has errors printed as objects, whatever -o says.
	ErrorObjects bool
	// Getenv reads the environment; nil reads none.
	Getenv func(string) string
	// Open gives the engine; it is called on first need, and again when a
	// stronger Need shows up later in the same run. The owner closes it.
	Open func(ctx context.Context, need Need) (*engine.Engine, error)
	// Close closes what Open opened before the door itself ends; nil when the
	// engine outlives every command.
	Close func() error
	Doors Doors
	// Attached says that this is a session from elsewhere: the program's own
	// terminal is not the operator's. Terminal is then theirs; nil when they
	// have none.
	Attached bool
	Terminal *term.Remote
	// Busy tells who would be an engine itself that this one has the data file; nil
	// tells nothing.
	Busy func() error
	// Remote says that the session comes from another machine: its tenant can't
	// be left, and no line names a file, which would be one of this machine.
	Remote bool
	// Signer connects to what signs answers at the machine that the operator sits at;
	// nil is this one, unless the environment names its socket.
	Signer func() (io.ReadWriteCloser, error)
	// Elsewhere carries a line out in the process that has the data file, once Open
	// has failed with ExitElsewhere; nil is here alone.
	Elsewhere func(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) (int, error)
	// Own are the engine's own files, which no line may name; nil is those of
	// the data file.
	Own *safeopen.Own
	// Files are the texts that a line from another machine may name all the
	// same, by name: those that a script brought along.
	Files map[string][]byte
	// Refused is told of what the role, or being on another machine, forbids; nil is not.
	Refused func(by core.Caller, err error)
	// Doctor looks at what the machine gives, and changes nothing; nil is refused
	// as not available.
	Doctor func(ctx context.Context, look Look) []Check
	// Troubles are what is wrong with a data file and the engine that has it, of
	// every tenant; nil knows of none.
	Troubles func(ctx context.Context, data string) ([]health.Trouble, error)
	// Stuck tells why the state can't be reached or written, and since when; nil says
	// nothing of it.
	Stuck func() (since time.Time, why error)
	// LogIn asks whether to open the login of a coding agent in the caller's terminal,
	// and returns once it is over; nil is none.
	LogIn func(ctx context.Context, name string, argv []string) error
	// Lend runs a program of the caller's on their terminal, whose interrupts are the
	// program's meanwhile; nil is that they have none, or sit at another machine.
	Lend func(argv []string) error
	// Clock tells the time for ages and --since; nil is the system clock.
	Clock core.Clock
	// Version is printed by `version`; "" reads the build information.
	Version string
}

// Need says what a command asks of the engine.
type Need struct {
	Data     string        // path of the data file, never ""
	Tenant   string        // whose work it is about, as given; "" is any, or none
	ReadOnly bool          // opens without writing a byte
	Active   bool          // work must be scheduled while the command runs
	Watch    bool          // it does with reading a database, if it is told what engines elsewhere commit
	Alone    bool          // another process that has the data file is not asked to carry it out
	Shared   bool          // it is for whatever tenants come to this process
	Slots    int           // tasks without an agent that run at once; 0 is SWARMDECK_SLOTS, or 8
	Deadline time.Duration // of what a run asks; 0 is SWARMDECK_DEADLINE, or by its risk
	NoWait   bool          // does not wait for a data file that is in use, unless who has it can be asked
	Log      Log           // what is logged of the engine; the zero one is nothing
	Dir      string        // where work runs that names no directory; "" is the engine's own choice
}

// OtherPatience is how long a line waits for the engine that has its tenant: one that
// was killed has lost its tenants by then.
const OtherPatience = 6 * time.Second

// Engines are those of a process: one for a data file, and of a database one for each
// tenant that is worked on here.
type Engines interface {
	// Of gives the engine that works on a tenant.
	Of(ctx context.Context, tenant string) (*engine.Engine, error)
	// All are those that work now.
	All() []*engine.Engine
}

// Log says where the engine's log goes, and what of it.
type Log struct {
	Format string // text, json
	Level  string // debug, info, warn, error
	File   string // "" is the standard error
}

// Globals are the global flags, with the environment's defaults filled in.
type Globals struct {
	Data       string // absolute path; "" for a script that is to have a fresh file
	Tenant     string // as given; "" when defaulted
	Output     string // text, json, wide
	As         string
	Key        string // file of the private key that proves As
	ReadOnly   bool
	Color      string // auto, always, never
	ASCII      bool
	Theme      string
	Accessible bool
	Script     string
	Update     bool
	Show       bool
}

// Following gives a context that ends, too, when an engine that the environment opens
// from now on is retired. Over says that this is so. A line that writes is waited for.
func (e *Env) Following(ctx context.Context, writes bool) (_ context.Context, over func() bool, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	open := e.Open
	e.Open = func(asked context.Context, need Need) (*engine.Engine, error) {
		eng, err := open(asked, need)
		if err == nil {
			done := func() {}
			if writes {
				done = eng.Enter()
			}
			go func() { // ends with the line
				defer done()
				select {
				case <-eng.Retired():
					cancel(errRetired)
				case <-ctx.Done():
				}
			}()
		}
		return eng, err
	}
	return ctx, func() bool { return context.Cause(ctx) == errRetired }, func() { cancel(nil) }
}

var errRetired = errors.New("the engine that this was about has its tenant no more")

// Screen is what the flags say of the terminal.
func (g *Globals) Screen() term.Flags {
	return term.Flags{Color: g.Color, ASCII: g.ASCII, Accessible: g.Accessible}
}

// start is what a door begins with that works on the engine of a line.
func (c *call) start() Start {
	return Start{Globals: c.g, Caller: c.by, Engine: c.eng, Open: c.env.Open, Dir: c.env.Dir}
}

// Start is what a full-screen door or a script starts from.
type Start struct {
	Globals
	Caller core.Caller // with the tenant resolved, except for a script
	// Engine is open and active (read-only with --read-only); nil for a
	// script, which opens its own through Open.
	Engine  *engine.Engine
	Engines Engines // of those doors that serve several tenants
	Open    func(ctx context.Context, need Need) (*engine.Engine, error)
	// Dir is the directory the door was opened in.
	Dir string
	// Terminal is the agent whose terminal a cockpit opens first; "" for none.
	Terminal string
}

// Doors are the ways in that need more than this package has. A nil door is
// refused as not available. The cockpit gets an environment for the lines given
// inside it, which work on its engine; a script that of the program itself.
type Doors struct {
	Cockpit func(ctx context.Context, env *Env, s Start) error
	Script  func(ctx context.Context, env *Env, s Start) error
	// MCP serves the Model Context Protocol on the start's engine.
	MCP func(ctx context.Context, env *Env, s Start, m MCP) error
	// Serve lets others in until ctx ends.
	Serve func(ctx context.Context, env *Env, s Start, v Serve) error
	// Attach opens the cockpit of another machine.
	Attach func(ctx context.Context, env *Env, a Attach) error
	// Connect passes the messages of the protocol on stdin and stdout on to a
	// server over HTTP.
	Connect func(ctx context.Context, env *Env, url, token string) error
	// CADEnv serves CAD workspaces on stdin and stdout, without an engine.
	CADEnv func(ctx context.Context, env *Env, o CADEnv) error
}

// ExitError ends a run with a given exit code. A nil Err prints nothing.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return "failed"
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

func (e *Env) getenv(name string) string {
	if e.Getenv == nil {
		return ""
	}
	return e.Getenv(name)
}

func (e *Env) clock() core.Clock {
	if e.Clock == nil {
		return core.SystemClock{}
	}
	return e.Clock
}

// path resolves a path given on the command line.
func (e *Env) path(p string) string {
	if filepath.IsAbs(p) || e.Dir == "" {
		return p
	}
	return filepath.Join(e.Dir, p)
}

// named is what names the data: the flag, then SWARMDECK_DATA; "" is nothing.
func (e *Env) named(flag string) string { return cmp.Or(flag, e.getenv("SWARMDECK_DATA")) }

// dataPath is the data file: the one that is named, or stands for the database
// that is, then the XDG default.
func (e *Env) dataPath(flag string) string {
	switch p := e.named(flag); {
	case IsDatabase(p):
		return e.pointer(p)
	case p != "":
		return e.path(p)
	}
	return filepath.Join(baseDir(e.getenv, "XDG_DATA_HOME", ".local/share"), "swarmdeck", "swarmdeck.db")
}

// baseDir is a directory of the XDG Base Directory Specification: the
// environment's unless it is relative, else one in the user's home.
func baseDir(getenv func(string) string, name, inHome string) string {
	if dir := getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	home := getenv("HOME")
	if home == "" {
		if u, err := user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	return filepath.Join(home, inHome)
}
