package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/origin"
	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/command"
	"swarmdeck/ui/serve"
	"swarmdeck/ui/term"
)

// exitElsewhere ends a command line here because the engine of its data file
// runs in another process, which will carry it out.
const exitElsewhere = -1

// listen lets this user's other processes in to an engine until the returned
// function is called. An engine that can't listen is still one: others then
// find its data file locked.
func (h *house) listen(need command.Need, eng *engine.Engine) func() error {
	l, err := serve.Listen(serve.SocketPath(os.Getenv, instanceOf(need.Data)))
	if err != nil {
		return func() error { return nil }
	}
	own := newOwn(eng)
	sup := h.sup
	s := serve.New(serve.Options{
		Split: command.Split,
		Find:  func(pid int, alive func() bool) operator.Origin { return origin.Find(sup, pid, alive) },
		Run: func(ctx context.Context, t *serve.Session) int {
			env := localEnv(need, eng, t)
			if err := own.bind(env, t); err != nil {
				return command.Report(env, t.Args, err)
			}
			return command.Run(ctx, env, t.Args)
		},
	})
	end := func() error {
		defer own.refusals.end()
		return s.Close()
	}
	if err := s.Local(l, operatorName()); err != nil {
		return l.Close
	}
	return end
}

// localEnv is the environment of one command line, or of one cockpit, for
// another process of this user.
func localEnv(need command.Need, eng *engine.Engine, t *serve.Session) *command.Env {
	return &command.Env{
		Caller: core.Caller{Kind: core.Operator, Door: core.DoorCLI, Person: thisUser()},
		Dir:    t.Dir, Stdin: t.Stdin, Stdout: t.Stdout, Stderr: t.Stderr, Getenv: t.Getenv,
		Away: true, Terminal: t.Terminal, Doctor: doctor,
		Troubles: func(ctx context.Context, _ string) ([]health.Trouble, error) { return inspected(ctx, eng) },
		Doors:    command.Doors{Cockpit: cockpit, Script: playScript, MCP: serveMCP, Connect: connectMCP},
		Open: func(_ context.Context, asked command.Need) (*engine.Engine, error) {
			if instanceOf(asked.Data) != instanceOf(need.Data) {
				return nil, core.Errorf(core.InvalidInput, "data: this engine has %s, not %s", need.Data, asked.Data).With("field", "data")
			}
			return eng, nil
		},
	}
}

// thisUser is the person at this user's own doors: all names that a line can
// choose are one person's.
func thisUser() string { return "uid:" + strconv.Itoa(os.Getuid()) }

func operatorName() string {
	if u, err := osuser.Current(); err == nil {
		return u.Username
	}
	return "operator"
}

// surroundings are the variables of the environment that mean something to a
// command or a cockpit.
func surroundings() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "TRACEPARENT", "COLORTERM", "COLORFGBG", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "LANG", "LC_ALL", "LC_CTYPE", "ACCESSIBLE",
			"RUNEWIDTH_EASTASIAN", "TERM", "TERM_PROGRAM", "SSH_TTY", "SSH_CONNECTION", "HOME", "USER":
			env = append(env, kv)
		default:
			if strings.HasPrefix(name, "SWARMDECK_") || strings.HasPrefix(name, "XDG_") {
				env = append(env, kv)
			}
		}
	}
	return env
}

// attach has the process that has the data file carry a command line out, and
// returns its exit code.
func attach(ctx context.Context, conn net.Conn, dir string, args []string, in *input) (int, error) {
	a := serve.Attachment{
		Line: command.Join(args), Dir: dir, Env: surroundings(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Ahead: in.read(),
	}
	if showsCockpit(args) {
		a.Screen = os.Stdin
	}
	return serve.Attach(ctx, conn, a)
}

// showsCockpit says whether a line is one that takes the screen over.
func showsCockpit(args []string) bool {
	flags, ok := command.Cockpit(args)
	if !ok || !isTerminal(os.Stdin) || !isTerminal(os.Stdout) {
		return false
	}
	return !term.Detect(os.Getenv, true, true, term.Flags{Color: flags.Color, ASCII: flags.ASCII, Accessible: flags.Accessible}).Plain
}

// mayRepeat says whether a command whose engine went away in its middle can be
// carried out by the next: it shows something and changes nothing.
func mayRepeat(args []string) bool {
	_, cockpit := command.Cockpit(args)
	return cockpit || command.Describe(args).Effect == command.Reads
}

// errUnknown is what became of a command whose engine went away.
var errUnknown = errors.New("the engine that carried this out went away: it may have happened or not; look before you repeat it")

// elsewhere carries a command line out in the process that has the data file.
// When that one goes away, again says that the line is to be tried anew: here,
// or with who has the file then.
func elsewhere(ctx context.Context, env *command.Env, conn net.Conn, args []string, in *input, h *heirs) (code int, again bool) {
	patience := heirPatience
	if command.Completing(args) {
		patience = completionPatience
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, patience)
		defer done()
	}
	start := time.Now()
	code, err := attach(ctx, conn, env.Dir, args, in)
	gone, unbegun := errors.Is(err, serve.ErrGone), errors.Is(err, serve.ErrUnbegun)
	if !unbegun && time.Since(start) > heirHolds {
		*h = heirs{}
	}
	switch {
	case err == nil:
		return code, false
	case ctx.Err() != nil:
		return command.ExitInterrupted, false
	case gone && (unbegun || mayRepeat(args)):
		if h.wait(ctx, patience) {
			return 0, true
		}
		err = fmt.Errorf("%w; tried for %s", err, patience)
	case gone:
		err = errUnknown
	}
	return command.Report(env, args, core.Errorf(core.Unavailable, "%v", err)), false
}

// completionPatience is how long a shell waits for an engine to complete a word.
const completionPatience = 2 * time.Second

const (
	heirPause    = 20 * time.Millisecond  // lets the process that went away let go of the file
	heirLongest  = 500 * time.Millisecond // as often as an engine that goes away again and again is asked
	heirPatience = 5 * time.Second        // and as long
	heirHolds    = time.Second            // one that was there this long is another matter
)

// heirs are the processes that have the data file one after the other, and go
// away while a command is told to them.
type heirs struct {
	since time.Time // the first went away
	pause time.Duration
}

// wait lets the next come; false is that too much time has passed.
func (h *heirs) wait(ctx context.Context, patience time.Duration) bool {
	if h.since.IsZero() {
		*h = heirs{since: time.Now(), pause: heirPause}
	}
	if time.Since(h.since) >= patience {
		return false
	}
	select {
	case <-time.After(h.pause):
	case <-ctx.Done(): // which ends the next one at once
	}
	h.pause = min(2*h.pause, heirLongest)
	return true
}

// maxAhead bounds what is remembered of the standard input.
const maxAhead = 16 << 20

// input is the standard input, remembered until it is known which process
// carries the command out.
type input struct {
	*os.File
	mu    sync.Mutex
	kept  bytes.Buffer
	known bool
}

func (in *input) Read(p []byte) (int, error) {
	n, err := in.File.Read(p)
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.known && in.kept.Len() < maxAhead {
		in.kept.Write(p[:n])
	}
	return n, err
}

func (in *input) read() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	return bytes.Clone(in.kept.Bytes())
}

// stay says that the command is carried out here.
func (in *input) stay() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.known = true
	in.kept = bytes.Buffer{}
}

var _ io.ReadCloser = (*input)(nil)

// knock finds the process that has a data file, when it listens.
func knock(ctx context.Context, data string) (net.Conn, error) {
	if _, err := os.Stat(data); err != nil {
		return nil, err
	}
	path := serve.SocketPath(os.Getenv, instanceOf(data))
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("no engine listens: %w", err)
	}
	return serve.Dial(ctx, path)
}
