package socket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/command"
	"swarmdeck/ui/serve"
	"swarmdeck/ui/term"
)

// Elsewhere carries this program's command lines out in the process that has the
// data file, or at the engine that Login is for.
type Elsewhere struct {
	In    *Input
	Login func() *serve.Login
	next  successors
}

// attach has the process that has the data file carry a command line out, and
// returns its exit code.
func attach(ctx context.Context, conn net.Conn, login *serve.Login, env *command.Env, args []string, in *Input) (int, error) {
	a := attachment(login, env.Dir, args, os.Stdin, os.Stdout, os.Stderr)
	a.Ahead = in.read()
	if showsCockpit(args) {
		a.Screen, a.Lend = os.Stdin, env.Lend
	}
	return serve.Attach(ctx, conn, a)
}

// attachment is a line as the process that carries it out needs it. To another machine
// neither paths nor variables of this one mean anything.
func attachment(login *serve.Login, dir string, args []string, in io.Reader, out, errs io.Writer) serve.Attachment {
	a := serve.Attachment{Line: core.Join(args), Dir: dir, Env: surroundings(), Stdin: in, Stdout: out, Stderr: errs, Login: login}
	if login != nil {
		a.Line, a.Dir, a.Env = core.Join(without(args, "--data")), "", serve.Screen(os.Getenv)
	}
	return a
}

// showsCockpit says whether a line is one that takes the screen over.
func showsCockpit(args []string) bool {
	flags, ok := command.Cockpit(args)
	if !ok || !term.IsTerminal(os.Stdin) || !term.IsTerminal(os.Stdout) {
		return false
	}
	return !term.Detect(os.Getenv, true, true, flags.Screen()).Plain
}

// errUnknown is what became of a command whose engine went away.
var errUnknown = errors.New("the engine that carried this out went away: it may have happened or not; look before you repeat it")

// Run carries a command line out in the process that has the data file.
// When that one goes away, again says that the line is to be tried anew: here,
// or with who has the file then.
func (e *Elsewhere) Run(ctx context.Context, env *command.Env, conn net.Conn, args []string) (code int, again bool) {
	patience := patienceFor
	if command.Completing(args) {
		patience = completionPatience
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, patience)
		defer done()
	}
	start := time.Now()
	code, err := attach(ctx, conn, e.Login(), env, args, e.In)
	gone, unbegun := errors.Is(err, serve.ErrGone), errors.Is(err, serve.ErrUnbegun)
	if !unbegun && time.Since(start) > holds {
		e.next = successors{}
	}
	switch {
	case err == nil:
		return code, false
	case ctx.Err() != nil:
		return command.ExitInterrupted, false
	case gone && (unbegun || command.Repeats(args)):
		if !unbegun && showsCockpit(args) { // whose screen is empty until then
			fmt.Fprint(env.Stderr, "swarmdeck: the engine of this cockpit went away; the cockpit comes back with the next one (ctrl+c ends)\r\n")
		}
		if e.next.wait(ctx, patience) {
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
	firstPause   = 20 * time.Millisecond  // lets the process that went away let go of the file
	longestPause = 500 * time.Millisecond // as often as an engine that goes away again and again is asked
	patienceFor  = 5 * time.Second        // and as long
	holds        = time.Second            // one that was there this long is another matter
)

// successors are the processes that have the data file one after the other, and go
// away while a command is told to them.
type successors struct {
	since time.Time // the first went away
	pause time.Duration
}

// wait lets the next come; false is that too much time has passed.
func (s *successors) wait(ctx context.Context, patience time.Duration) bool {
	if s.since.IsZero() {
		*s = successors{since: time.Now(), pause: firstPause}
	}
	if time.Since(s.since) >= patience {
		return false
	}
	core.Within(ctx.Done(), s.pause) // its end ends the next one at once
	s.pause = min(2*s.pause, longestPause)
	return true
}

// maxAhead bounds what is remembered of the standard input.
const maxAhead = 16 << 20

// Input is the standard input, remembered until it is known which process
// carries the command out.
type Input struct {
	*os.File
	mu    sync.Mutex
	kept  bytes.Buffer
	known bool
}

func (in *Input) Read(p []byte) (int, error) {
	n, err := in.File.Read(p)
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.known && in.kept.Len() < maxAhead {
		in.kept.Write(p[:n])
	}
	return n, err
}

func (in *Input) read() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	return bytes.Clone(in.kept.Bytes())
}

// Stay says that the command is carried out here.
func (in *Input) Stay() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.known = true
	in.kept = bytes.Buffer{}
}

var _ io.ReadCloser = (*Input)(nil)

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
