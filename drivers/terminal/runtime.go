// Package terminal keeps interactive programs as agents: a coding agent's own
// screen, a shell, a REPL. Each has a terminal in its cell. What the program
// writes goes into an emulator and no further; what is to be seen is the
// emulator's picture.
//
// A task's text is pasted into the program and sent with enter. Whether the
// program works or waits is told by, the surest first: what its own hooks say
// (OSC 777;swarmdeck;WORD), a progress that it shows (OSC 9;4), a shell's marks
// of its prompt (OSC 133), a bell or a notification, and its screen, which stands
// still with the cursor at a prompt. A task is over when the program waits again
// or exits.
//
// Like every run, the program ends with its engine.
package terminal

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/terminal"
)

// Runtime keeps interactive programs as agents.
type Runtime struct{ keeper.Local }

var (
	_ fleet.Runtime = (*Runtime)(nil)
	_ fleet.Keeper  = (*Runtime)(nil)
	_ fleet.Walled  = (*Runtime)(nil)
	_ fleet.Homely  = (*Runtime)(nil)
)

// Options of NewRuntime.
type Options = keeper.Local

// NewRuntime returns a runtime whose processes opt.Cells owns.
func NewRuntime(opt Options) *Runtime {
	opt, _ = opt.Filled() // without a working directory it stays as it was given
	return &Runtime{opt}
}

func (*Runtime) Reach(options core.Raw) (places, secrets []string) {
	o, err := readOptions(options)
	if err != nil {
		return nil, nil
	}
	return o.Outside(), nil
}

func (r *Runtime) Check(c fleet.Create) error {
	o, err := readOptions(c.Options)
	if err != nil {
		return err
	}
	return r.Local.Check(c, o.Choices, unrecorded, elsewhere)
}

// elsewhere are the options of an agent on a host.
const elsewhere = "cols, rows, prompt, quiet_ms and interrupt"

// unrecorded are the models that are recorded of a program that shows a screen: none.
var unrecorded = []string{}

// Open implements fleet.Runtime. The agent is idle at once, or offline until its
// program is there; nothing runs before the first prompt, or before somebody
// opens its terminal. When ctx ends the agent is closed.
func (r *Runtime) Open(ctx context.Context, a fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	own, err := readOptions(a.Options)
	if err != nil {
		return nil, err
	}
	h := &agent{own: own, size: terminal.Size{Cols: own.cols(), Rows: own.rows()}, changed: make(chan struct{})}
	if h.Place, err = r.Place(a, own.Choices, unrecorded, elsewhere); err != nil {
		return nil, err
	}
	h.Spec.Env = ofTerminal(h.Spec.Env)
	h.There = keeper.Hosted{Whole: true}
	h.End = cell.Grace{Interrupt: -1, Terminate: time.Second} // who sits at a terminal hangs up
	h.Open(ctx, a, notify, keeper.Ways{Retry: h.retry})
	return h, nil
}

// ofTerminal is an environment for the emulator, unless it says otherwise itself.
func ofTerminal(env map[string]string) map[string]string {
	with := map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor", "SWARMDECK_TERMINAL": "1"}
	maps.Copy(with, env)
	return with
}

// agentOptions are the options of one agent.
type agentOptions struct {
	// Cols and Rows are the size until somebody who types has another; 0 is 120x40.
	Cols int `json:"cols,omitzero"`
	Rows int `json:"rows,omitzero"`
	// Prompt is how the last lines of the screen look, without blanks at their end, or
	// the cursor's line before it, when the program waits, as a regular expression; ""
	// is the usual ends of a prompt, in the cursor's line.
	Prompt string `json:"prompt,omitempty" allow:"at most 1000 bytes"`
	// QuietMS is how long the screen stands still for that to count, in milliseconds;
	// 0 is 1500.
	QuietMS int `json:"quiet_ms,omitzero" allow:"none or 100-600000"`
	// Interrupt is what is typed to cancel a task; "" is ctrl+c.
	Interrupt string `json:"interrupt,omitempty" allow:"at most 64 bytes"`
	keeper.Choices

	prompt *regexp.Regexp // nil is the usual
}

func readOptions(options core.Raw) (o agentOptions, err error) {
	if len(options) > 0 {
		if err := core.Decode(options, &o); err != nil {
			return o, fmt.Errorf("options: %w", err)
		}
	}
	if err := bound.CheckIn("options.", &o); err != nil {
		return o, err
	}
	size := terminal.Size{Cols: o.cols(), Rows: o.rows()}
	switch {
	case size.Bounded() != size:
		return o, core.Invalid("options.cols, options.rows", size.String(), fmt.Sprintf("from %dx%d to %dx%d", terminal.MinCols, terminal.MinRows, terminal.MaxCols, terminal.MaxRows))
	case strings.ContainsRune(o.Interrupt, 0):
		return o, core.Invalid("options.interrupt", o.Interrupt, "what can be typed")
	case o.Prompt != "":
		if o.prompt, err = regexp.Compile("(?m)" + o.Prompt); err != nil {
			return o, core.Invalid("options.prompt", core.Clip(o.Prompt), "a regular expression (RE2): "+err.Error())
		}
	}
	return o, o.Options.Check()
}

func (o *agentOptions) cols() int { return cmp.Or(o.Cols, 120) }

func (o *agentOptions) rows() int { return cmp.Or(o.Rows, 40) }

func (o *agentOptions) quiet() time.Duration {
	return time.Duration(cmp.Or(o.QuietMS, 1500)) * time.Millisecond
}

func (o *agentOptions) interrupt() []byte { return []byte(cmp.Or(o.Interrupt, "\x03")) }

// agent is one open agent: at most one program and one prompt at a time.
type agent struct {
	keeper.Agent[*session, *turn]
	own agentOptions

	// Guarded by Mu.
	shown *session // whose picture is shown: Sess, or the last there was
	size  terminal.Size

	seen    sync.Mutex
	changed chan struct{} // closed at the next change of the picture
	asked   bool          // somebody waits for it
}

var (
	_ fleet.Handle      = (*agent)(nil)
	_ terminal.Terminal = (*agent)(nil)
)

// retry has a failed agent tried again: it is enough that it could be started.
func (a *agent) retry() {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if !a.Keep.Stopped && !a.Keep.Over() && a.Sess == nil {
		a.Keep.Check(a.Available())
	}
}

// launch starts the program; Mu is held.
func (a *agent) launch(parent string) error {
	a.Keep.Quiet()
	size := a.size
	run, err := a.Launch(parent, func(spec *cell.Spec, _ *secret.Mask) error {
		spec.Terminal = &size
		return nil
	})
	if err != nil {
		a.Keep.Barred("can't start: ", err)
		return err
	}
	from := uint64(0)
	if a.shown != nil {
		from = a.shown.screen.Rev()
	}
	a.Sess = newSession(a, run, from)
	a.shown = a.Sess
	go a.Sess.run()
	a.Keep.Up()
	return nil
}

// over is called when a program has ended with nothing left of it.
func (a *agent) over(s *session) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if !a.Left(s) {
		return
	}
	exit := s.Exit
	asked := s.Ending || a.Turn != nil && a.Turn.Ending() != keeper.Running
	// A shell's status is that of its last command: only a start that fails, and a
	// signal that nobody sent, say that something is wrong.
	if !asked && (exit.Signal != 0 || exit.Code != 0 && exit.Duration < settleTime) {
		a.Crashed = true
		a.Keep.Fail(fmt.Sprintf("process %d %s", s.Proc.PID(), exit.Describe()), true)
		return
	}
	a.Keep.Tell(fleet.Idle, "")
}

// settleTime is how long a program lives that could be started.
const settleTime = time.Second
