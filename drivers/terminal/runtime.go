package terminal

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
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
	// Grace is how long an interrupted prompt may take until its program is
	// ended; 0 means 3 s. An agent must be idle within 5 s of a cancel.
	Grace time.Duration
}

// Runtime keeps interactive programs as agents.
type Runtime struct {
	sup *cell.Supervisor
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
	return &Runtime{sup: sup, opt: opt}
}

// Profile implements fleet.Walled.
func (*Runtime) Profile() string { return string(cell.Worker) }

// Reach implements fleet.Homely.
func (*Runtime) Reach(options core.Raw) (places, secrets []string) {
	o, err := readOptions(options)
	if err != nil {
		return nil, nil
	}
	if places = o.Reach(); o.Any() {
		places = append(places, "read, write and hide")
	}
	return places, nil
}

// Check implements fleet.Runtime: the command must be there and runnable, and
// its directory exist.
func (r *Runtime) Check(c fleet.Create) error {
	spec, err := cell.NewSpec(c.Command, c.Env, c.Dir, r.opt.Dir)
	if err != nil {
		return err
	}
	o, err := readOptions(c.Options)
	if err != nil {
		return err
	}
	profile, err := cell.ParseProfile("profile", c.Profile)
	if err != nil {
		return err
	}
	if err := cell.CheckInspect("options.inspect", profile, o.Inspect); err != nil {
		return err
	}
	if err := r.sup.CheckPlaces("options.", o.Places); err != nil {
		return err
	}
	if _, err := r.homeOf(fleet.Agent{Name: c.Name, Env: c.Env, Profile: c.Profile}, o); err != nil {
		return err
	}
	return spec.Available()
}

// Open implements fleet.Runtime. The agent is idle at once, or offline until its
// program is there; nothing runs before the first prompt, or before somebody
// opens its terminal. When ctx ends the agent is closed.
func (r *Runtime) Open(ctx context.Context, a fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	spec, err := cell.NewSpec(a.Command, a.Env, a.Dir, r.opt.Dir)
	if err != nil {
		return nil, err
	}
	own, err := readOptions(a.Options)
	if err != nil {
		return nil, err
	}
	spec.Limits = r.opt.Limits
	spec.Run = strings.Join([]string{"agent", a.TenantID, a.Name}, ":")
	spec.Whose = cell.Whose{Tenant: a.TenantID, Agent: a.Name, Role: a.Role}
	spec.Env = ofTerminal(spec.Env)
	spec.Wall = cell.Wall{Profile: cell.Profile(a.Profile), Told: true, Inspect: own.Inspect, More: own.Places}
	h := &agent{
		sup: r.sup, opt: r.opt, own: own, tenant: a.TenantID, spec: spec,
		size: terminal.Size{Cols: own.cols(), Rows: own.rows()}, changed: make(chan struct{}),
	}
	if h.home, err = r.homeOf(a, own); err != nil {
		return nil, err
	}
	if h.home != nil {
		h.spec.Wall.Home = h.home.Path
	}
	h.keep = keeper.New(ctx, a.Restarts, notify, h.pid, h.retry)
	h.mu.Lock()
	h.keep.Check(spec.Available())
	h.mu.Unlock()
	h.unhook = context.AfterFunc(ctx, func() { _ = h.Close() })
	return h, nil
}

// ofTerminal is an environment for the emulator, unless it says otherwise itself.
func ofTerminal(env map[string]string) map[string]string {
	with := map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor", "SWARMDECK_TERMINAL": "1"}
	maps.Copy(with, env)
	return with
}

// homeOf is the HOME that is kept for an agent, nil for none: its environment
// names another, or it is open and has that of the engine's user.
func (r *Runtime) homeOf(a fleet.Agent, o agentOptions) (*home.Home, error) {
	if named, given := a.Env["HOME"]; given {
		return nil, o.WithoutHome(named)
	}
	h := &home.Home{Options: o.Options, Path: o.Home, Own: r.opt.Own}
	switch {
	case o.Home != "":
	case cell.Profile(a.Profile) == cell.Open && !o.Given(), r.opt.State == "" && !o.Given():
		return nil, nil
	case r.opt.State == "":
		return nil, core.Errorf(core.Unavailable, "no homes are kept here")
	default:
		h.Path = filepath.Join(home.Of(r.opt.State, a), "home")
	}
	return h, nil
}

// Keep implements fleet.Keeper: homes of agents that are no more go.
func (r *Runtime) Keep(_ context.Context, agents []fleet.Agent) error {
	if r.opt.State == "" {
		return nil
	}
	return home.Keep(r.opt.State, agents)
}

// Forget implements fleet.Keeper. A home that was named by an option stays.
func (r *Runtime) Forget(_ context.Context, a fleet.Agent) error {
	if r.opt.State == "" {
		return nil
	}
	return home.Forget(r.opt.State, a)
}
