package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"swarmdeck/engine/fleet"
)

// Keep implements fleet.Keeper: what is kept for agents that are no more goes.
func (r *Runtime) Keep(_ context.Context, agents []fleet.Agent) error {
	kept := map[string]bool{}
	for _, a := range agents {
		kept[r.own(a)] = true
		if p, err := r.placeOf(a); err == nil {
			kept[filepath.Dir(p.home)] = true // shared with others
		}
	}
	all, err := filepath.Glob(filepath.Join(r.opt.State, "*", "*"))
	if err != nil {
		return fmt.Errorf("look for what was kept for agents: %w", err)
	}
	var errs []error
	for _, dir := range all {
		if !kept[dir] {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// Forget implements fleet.Keeper: the home and the conversation of a deleted
// agent go. A home that was named by an option, or that others share, stays.
func (r *Runtime) Forget(_ context.Context, a fleet.Agent) error {
	if err := os.RemoveAll(r.own(a)); err != nil {
		return fmt.Errorf("remove what was kept for agent %s: %w", a.Name, err)
	}
	return nil
}

// own is the directory of what is kept for one agent alone.
func (r *Runtime) own(a fleet.Agent) string { return filepath.Join(r.opt.State, a.TenantID, a.Name) }
