package terminal

import (
	"context"
	"maps"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
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
