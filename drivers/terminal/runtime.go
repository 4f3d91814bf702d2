package terminal

import (
	"context"
	"maps"
	"path/filepath"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/terminal"
)

// Options of NewRuntime.
type Options struct {
	// Dir is where an agent without a directory runs, and what relative ones
	// start from.
	Dir string
	// State is the directory for the agents' homes; "" keeps none.
	State string
	// Own are the engine's own files, which are copied into no home.
	Own *safeopen.Own
	// Limits of every agent's processes; the zero value means cell.DefaultLimits.
	Limits cell.Limits
	// Secrets gives agents what their environment refers to; nil knows none.
	Secrets secret.Resolver
	// Hosts run agents that have their place on another machine; nil refuses them.
	Hosts keeper.Hosts
	// Grace is how long an interrupted prompt may take until its program is
	// ended; 0 means 3 s. An agent must be idle within 5 s of a cancel.
	Grace time.Duration
}

// Runtime keeps interactive programs as agents.
type Runtime struct {
	keeper.Local
	opt Options
}

var (
	_ fleet.Runtime = (*Runtime)(nil)
	_ fleet.Keeper  = (*Runtime)(nil)
	_ fleet.Walled  = (*Runtime)(nil)
	_ fleet.Homely  = (*Runtime)(nil)
)

// NewRuntime returns a runtime whose processes the supervisor owns.
func NewRuntime(sup *cell.Supervisor, opt Options) *Runtime {
	if opt.Limits == (cell.Limits{}) {
		opt.Limits = cell.DefaultLimits()
	}
	if abs, err := filepath.Abs(opt.Dir); err == nil {
		opt.Dir = abs
	}
	if opt.Secrets == nil {
		opt.Secrets = secret.Plain
	}
	if opt.Grace <= 0 {
		opt.Grace = 3 * time.Second
	}
	return &Runtime{keeper.Local{Cells: sup, Dir: opt.Dir, State: opt.State, Own: opt.Own, Limits: opt.Limits}, opt}
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
	if c.Host != "" {
		_, err := r.checkHosted(c, o)
		return err
	}
	return r.Local.Check(c, o.Choices)
}

// Open implements fleet.Runtime. The agent is idle at once, or offline until its
// program is there; nothing runs before the first prompt, or before somebody
// opens its terminal. When ctx ends the agent is closed.
func (r *Runtime) Open(ctx context.Context, a fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	own, err := readOptions(a.Options)
	if err != nil {
		return nil, err
	}
	spec, kept, err := r.place(a, own)
	if err != nil {
		return nil, err
	}
	spec.Env = ofTerminal(spec.Env)
	h := &agent{opt: r.opt, own: own, size: terminal.Size{Cols: own.cols(), Rows: own.rows()}, changed: make(chan struct{})}
	h.Place = keeper.Place{
		Cells: r.Cells, Hosts: r.opt.Hosts, Host: a.Host, There: keeper.Hosted{Whole: true}, Spec: spec, Home: kept, Secrets: r.opt.Secrets,
		Grace: cell.Grace{Interrupt: -1, Terminate: time.Second}, // who sits at a terminal hangs up
	}
	h.Open(ctx, a.Restarts, notify, keeper.Ways{Retry: h.retry, Shut: h.Close})
	return h, nil
}

// ofTerminal is an environment for the emulator, unless it says otherwise itself.
func ofTerminal(env map[string]string) map[string]string {
	with := map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor", "SWARMDECK_TERMINAL": "1"}
	maps.Copy(with, env)
	return with
}
