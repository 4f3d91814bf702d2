package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/op"
	"swarmdeck/store"
	"swarmdeck/ui/term"
)

// The exit codes. A value of the line that is not allowed is usage, whether
// the command finds it or the engine.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitStore       = 3
	ExitTimeout     = 4
	ExitInterrupted = 130
)

// ExitElsewhere ends a command line here because the engine of its data file
// runs in another process, which will carry it out.
const ExitElsewhere = -1

// Run carries out one command line and returns its exit code. Output goes to
// env's writers, errors as one line (an object with -o json) to Stderr.
func Run(ctx context.Context, env *Env, args []string) int {
	if Completing(args) {
		return shellComplete(ctx, env, args)
	}
	if len(args) == 1 && args[0] == "--version" {
		args = []string{"version"}
	}
	t := treeFor(env, ctx, args)
	t.root.SetArgs(append([]string{}, args...)) // never nil: cobra would read os.Args
	t.root.SetIn(env.Stdin)
	t.root.SetOut(env.Stdout)
	t.root.SetErr(env.Stderr)
	err := t.root.ExecuteContext(ctx)
	var cause *ExitError
	if (err == nil || errors.Is(err, context.Canceled)) && errors.As(context.Cause(ctx), &cause) {
		err = cause // who cancelled the command says why, also when it ended in order
	}
	code := t.exitCode(err)
	if code != ExitOK {
		report(env, args, code, err)
	}
	return code
}

func (t *tree) exitCode(err error) int {
	var exit *ExitError
	var failed *op.Failed
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, op.ErrTimeout):
		return ExitTimeout
	case t.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(t.ctx))):
		return ExitInterrupted
	case store.IsFault(err):
		return ExitStore
	case errors.As(err, &failed):
		return ExitFailed
	case t.call == nil || errors.Is(err, core.Kind(core.InvalidInput)):
		return ExitUsage
	}
	return ExitFailed
}

// inFile is a mistake in what a file holds: the line that names the file is
// well, so this is a failure and no usage.
func inFile(err error) error { return &op.Failed{Err: err} }

// usage makes a mistake in the command line: exit code 2.
func usage(field string, format string, args ...any) error {
	return core.Errorf(core.InvalidInput, format, args...).With("field", field)
}

// flagError names the flag in what pflag found.
func flagError(cmd *cobra.Command, err error) error {
	e := core.Errorf(core.InvalidInput, "%s", err.Error())
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		if near := flagNear(cmd, unknown.GetSpecifiedName()); near != "" {
			e.Message += "; did you mean " + near + "?"
		}
		e = e.With("field", unknown.GetSpecifiedName())
	case errors.As(err, &missing):
		e = e.With("field", missing.GetSpecifiedName())
	case errors.As(err, &invalid):
		name := invalid.GetFlag().Name
		reason := err.Error()
		switch invalid.GetFlag().Value.Type() {
		case "int", "int64":
			reason = "allowed: a whole number"
		case "float64":
			reason = "allowed: a number"
		case "bool":
			reason = "allowed: true, false"
		default:
			if _, after, ok := strings.Cut(reason, " flag: "); ok {
				reason = after
			}
		}
		e = core.Errorf(core.InvalidInput, "--%s: %q is not allowed; %s", name, core.Clip(invalid.GetValue()), reason).With("field", name).With("value", core.Clip(invalid.GetValue()))
	}
	return e
}

// asError gives err its code of the command language.
func asError(err error, code int) *core.Error {
	e := core.AsError(err)
	if e.Code != core.Internal {
		return e
	}
	if in := (*store.DatabaseError)(nil); errors.As(err, &in) { // what was asked for matters less
		e.Message = in.Error()
	}
	is := core.Internal
	switch {
	case code == ExitUsage:
		is = core.InvalidInput
	case code == ExitStore, code == ExitTimeout, code == ExitInterrupted:
		is = core.Unavailable
	case errors.Is(err, store.ErrNoTenant):
		is = core.NotFound
	case errors.Is(err, store.ErrTenantExists):
		is = core.Conflict
	case errors.Is(err, store.ErrReadOnly):
		is = core.Denied
	}
	return &core.Error{Code: is, Message: e.Message, Details: e.Details}
}

// Report prints an error as Run does and returns its exit code.
func Report(env *Env, args []string, err error) int {
	report(env, args, ExitFailed, err)
	return ExitFailed
}

// report prints what went wrong, on one line.
func report(env *Env, args []string, code int, err error) {
	var exit *ExitError
	var failed *op.Failed
	if errors.As(err, &exit) && exit.Err == nil || errors.As(err, &failed) && failed.Err == nil {
		return
	}
	e := asError(err, code)
	if code == ExitInterrupted {
		e = core.Errorf(core.Unavailable, "interrupted")
	}
	if env.ErrorObjects || jsonWanted(args) {
		line, encErr := core.Encode(map[string]any{"error": e})
		if encErr == nil {
			fmt.Fprintf(env.Stderr, "%s\n", visible(line))
			return
		}
	}
	for i, line := range strings.Split(strings.TrimSpace(e.Message), "\n") {
		if i == 0 {
			fmt.Fprintf(env.Stderr, "swarmdeck: %s\n", term.Clean(line))
		} else if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(env.Stderr, "  %s\n", term.Clean(line))
		}
	}
}

// jsonWanted looks for -o json without a parse, because the error to print
// may be that the line can't be parsed.
func jsonWanted(args []string) bool {
	wanted := false
	for i, a := range args {
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch a {
		case "--":
			return wanted
		case "-o", "--output":
			wanted = next == "json"
		case "-ojson", "-o=json", "--output=json":
			wanted = true
		}
	}
	return wanted
}

// MaxCapture bounds what Capture keeps of a command's output, in bytes.
const MaxCapture = 4 << 20

// Capture runs a line for a door without writers of its own and returns what
// it printed; errors are objects. A command that prints more than MaxCapture
// fails.
func Capture(ctx context.Context, env Env, args []string) (stdout, stderr string, code int) {
	var out, err bounded
	env.Stdout, env.Stderr, env.ErrorObjects = &out, &err, true
	code = Run(ctx, &env, args)
	return out.String(), err.String(), code
}

// bounded is a buffer that refuses to grow without end.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxCapture {
		return 0, fmt.Errorf("more than %d bytes", MaxCapture)
	}
	return b.Buffer.Write(p)
}

// How long a line waits for a disk that is full, or a database that does not answer, and
// then for what it began to end: it answers within 10 s.
const (
	stuckPatience = 6 * time.Second
	stuckEnd      = time.Second
)

// heed does what a line is about until that has ended, or can't as the state can't be
// reached or, where it waits for work, written: that is then why the line ends. What it
// began is left to itself.
func heed(c *call, do func() error) error {
	if c.env.Stuck == nil {
		return do()
	}
	ctx, end := context.WithCancelCause(c.ctx)
	defer end(nil)
	c.ctx = ctx
	done := make(chan error, 1)
	go func() { done <- health.Caught(do) }()
	tick := time.NewTicker(stuckPatience / 20)
	defer tick.Stop()
	for began := time.Now(); ; {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		since, why := c.env.Stuck()
		if why == nil || min(time.Since(began), time.Since(since)) < stuckPatience || errors.Is(why, store.ErrFull) && !c.waits.Load() {
			continue
		}
		end(why)
		select {
		case <-done:
		case <-time.After(stuckEnd):
		}
		return audit.AsFull(why)
	}
}
