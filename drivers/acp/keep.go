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
		if p, err := r.placeOf(a); err == nil && p.Home != nil {
			shared = append(shared, filepath.Dir(p.Home.Path))
		}
	}
	return home.Keep(r.State, agents, shared...)
}
