package exec

import (
	"context"
	"path/filepath"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

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
