package exec

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// RunnerOptions of NewRunner.
type RunnerOptions struct {
	// Dir is where a task without "dir" runs, and what relative ones start
	// from. "" is the engine's working directory.
	Dir string
	// Limits of every task; the zero value means cell.DefaultLimits.
	Limits cell.Limits
	// Grace of a cancel, between its steps; the zero value means 1.5 s each.
	Grace cell.Grace
	// Pins holds commands to the files that were judged; nil holds them to none.
	Pins *pin.Keeper
	// Secrets gives commands what their environment refers to; nil knows none.
	Secrets secret.Resolver
}

// Runner carries out exec.run tasks.
//
// Input is {"argv":[…],"dir":?,"env":?,"stdin":?,"profile":?,"inspect":?}. A command is not a shell
// line: write ["sh","-c","…"] for one. Its environment holds PATH, HOME, the
// locale and the like, TERM=dumb, and what "env" gives. When its first
// process ends, everything it left running is ended too, a background
// process after up to a second.
//
// The result is {"rc","stdout","stderr","duration_ms"}; "signal" when one
// ended it (rc is then 128 + its number); "stdout_truncated",
// "stdout_bytes" and "spill" (a file with all of it) when output was more
// than 1 MiB, with its digest in "spill_sha256", and the same for stderr with
// "spill_stderr" and "spill_stderr_sha256". "spill_place" names the machine on
// which they lie, where several share a database.
//
// A command that exits with 0 has succeeded. Otherwise the error's code is
//
//	exit_nonzero    it said no; not retried, since running it again is
//	                for whoever knows why
//	killed          a signal that we did not send ended it; retried
//	limit_exceeded  a resource limit ended it, or its cgroup's on memory; not
//	                retried, the limit stays
//	not_found       no such program or directory; not retried
//	not_runnable    no permission, or no format the system runs; not retried
//	start_failed    the system had no room for a process; retried
//	cancelled       Cancel was called (status cancelled)
type Runner struct {
	sup *cell.Supervisor
	opt RunnerOptions
}

var (
	_ swarm.Runner = (*Runner)(nil)
	_ swarm.Placed = (*Runner)(nil)
)

// NewRunner returns a runner whose processes the supervisor owns.
func NewRunner(sup *cell.Supervisor, opt RunnerOptions) (*Runner, error) {
	err := keeper.FillIn(&opt.Dir, &opt.Limits, &opt.Secrets)
	return &Runner{sup: sup, opt: opt}, err
}

// Check implements swarm.Runner. The action's arguments are the input with
// its directory made absolute. Whether the program and the directory exist is
// found out when it starts: an earlier task may make them.
func (r *Runner) Check(_ string, input core.Raw) (string, judge.Action, error) {
	in, err := parseInput(input, r.opt.Dir)
	if err != nil {
		return "", judge.Action{}, err
	}
	args, err := core.Encode(in)
	if err != nil {
		return "", judge.Action{}, fmt.Errorf("encode input: %w", err)
	}
	return in.title(), judge.Action{Kind: Kind, Args: args}, nil
}

// Bind finds the files of the work directory that an action names.
func (r *Runner) Bind(tenant string, action judge.Action) []judge.File {
	in, err := parseInput(action.Args, r.opt.Dir)
	if err != nil {
		return nil
	}
	return r.opt.Pins.Look(tenant, cell.Spec{Argv: in.Argv, Env: in.Env, Dir: in.Dir}.Line())
}

// Places implements swarm.Placed: a command works in its directory.
func (r *Runner) Places(input core.Raw) []string {
	in, err := parseInput(input, r.opt.Dir)
	if err != nil {
		return nil
	}
	return []string{in.Dir}
}

// Cell is the directory that a command works in, and why its cell may let more through, as
// cell.Loose has it.
func (r *Runner) Cell(tenant string, action judge.Action) (dir, loose string) {
	in, err := parseInput(action.Args, r.opt.Dir)
	if err != nil || r.sup == nil {
		return "", "nothing here holds it"
	}
	return in.Dir, r.sup.Loose(cell.Spec{Whose: cell.Whose{Tenant: tenant}, Wall: cell.Wall{Profile: in.Profile}})
}

// Slot implements swarm.Runner: the number of slots is the swarm's.
func (r *Runner) Slot(_, _ string) (bool, string) { return true, "" }

// Start implements swarm.Runner. It returns an error for an invalid input and
// for files that are not what was judged; a command that can't be started is a
// failed outcome.
func (r *Runner) Start(ctx context.Context, job swarm.Job) (swarm.Work, error) {
	in, err := parseInput(job.Task.Input, r.opt.Dir)
	if err != nil {
		return nil, err
	}
	pins, err := r.opt.Pins.Take(in.Dir, job.Files, nil)
	if err != nil {
		return nil, err
	}
	w := &work{command: newCommand(in.Stdin, r.opt.Grace, pins), job: job, capture: newCapture(job.Spill)}
	if w.start(ctx, r.sup, r.opt.Secrets, job.Task.TenantID, cell.Spec{
		Run: job.Task.TaskID, Whose: cell.Whose{Tenant: job.Task.TenantID, Task: job.Task.TaskID}, Argv: in.Argv, Dir: in.Dir, Env: cell.Traced(in.Env, job.Task.Traceparent()), Limits: r.opt.Limits, Wall: cell.Wall{Profile: in.Profile, Inspect: in.Inspect}, Pinned: pins.Pins,
	}) {
		go w.run(ctx)
	}
	return w, nil
}

// startError says why a command could not be started.
func startError(err error) task.Error {
	e := task.Error{Code: "start_failed", Message: core.ClipTo(pipe.Text([]byte(err.Error())), keeper.MaxMessage), Retryable: true}
	switch {
	case errors.Is(err, os.ErrNotExist):
		e.Code, e.Retryable = "not_found", false
	case errors.Is(err, os.ErrPermission), errors.As(err, new(cell.BadDir)),
		errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.E2BIG), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR):
		e.Code, e.Retryable = "not_runnable", false
	case errors.Is(err, core.Kind(core.Denied)):
		e.Code, e.Retryable = "denied", false
	case errors.As(err, new(*core.Error)):
		e.Code, e.Retryable = "invalid_input", false
	}
	return e
}

func failed(e task.Error) task.Outcome {
	return task.Outcome{Status: task.Failed, Output: core.Raw(`{}`), Error: &e}
}

// Kind is the task kind that Runner serves.
const Kind = "exec.run"

// runInput is the input of an exec.run task.
type runInput struct {
	Argv  []string          `json:"argv"`
	Dir   string            `json:"dir,omitempty"` // absolute, or relative to the engine's directory
	Env   map[string]string `json:"env,omitempty"`
	Stdin string            `json:"stdin,omitempty"`
	// Profile is what it reaches: reader, worker (the default) or open.
	Profile cell.Profile `json:"profile,omitempty"`
	// Inspect has its requests decided by method and path.
	Inspect bool `json:"inspect,omitzero"`
}

// parseInput reads an input strictly and completes it: what it returns is
// exactly what would run.
func parseInput(data core.Raw, base string) (in runInput, err error) {
	if err := core.CheckObject("input", data, core.MaxInput); err != nil {
		return in, err
	}
	if err := core.Decode(data, &in); err != nil {
		return in, err
	}
	if err := cell.CheckCommand("argv", in.Argv); err != nil {
		return in, err
	}
	if err := cell.CheckEnv(in.Env); err != nil {
		return in, err
	}
	if in.Dir, err = cell.CheckDir(in.Dir, base); err != nil {
		return in, err
	}
	if _, err := cell.ParseProfile("profile", string(in.Profile)); err != nil {
		return in, err
	}
	return in, cell.CheckInspect("inspect", in.Profile, in.Inspect)
}

// maxTitle is the length of a task's line in a list, in characters.
const maxTitle = 120

// title is the command on one line, quoted where a shell would need it, with
// given variables in front: what they hold is not for every list.
func (in runInput) title() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		text := "…"
		if ref := secret.Reference(in.Env[name]); ref != "" {
			text = "@" + ref
		}
		words = append(words, name+"="+text)
	}
	for _, a := range in.Argv {
		words = append(words, quote(a))
	}
	line := []rune(strings.Join(words, " "))
	if len(line) > maxTitle {
		line = append(line[:maxTitle-1], '…')
	}
	for i, r := range line {
		if !unicode.IsPrint(r) {
			line[i] = '\uFFFD' // a title is one visible line, the arguments tell the rest
		}
	}
	return string(line)
}

func quote(word string) string {
	if len(word) > 4*maxTitle {
		word = word[:4*maxTitle] // the title is cut shorter anyway
	}
	if quoted, err := syntax.Quote(word, syntax.LangBash); err == nil {
		return quoted
	}
	return core.Quote(word) // it has what no shell takes
}
