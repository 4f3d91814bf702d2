package acp

import (
	"context"
	"path/filepath"

	"swarmdeck/drivers/cell/home"
	"swarmdeck/engine/fleet"
)

// Keep implements fleet.Keeper: what is kept for agents that are no more goes.
func (r *Runtime) Keep(_ context.Context, agents []fleet.Agent) error {
	var shared []string
	for _, a := range agents {
		if p, err := r.placeOf(a); err == nil && p.there == nil {
			shared = append(shared, filepath.Dir(p.home))
		}
	}
	return home.Keep(r.opt.State, agents, shared...)
}

// Forget implements fleet.Keeper: the home and the conversation of a deleted
// agent go. A home that was named by an option, or that others share, stays.
func (r *Runtime) Forget(_ context.Context, a fleet.Agent) error { return home.Forget(r.opt.State, a) }
