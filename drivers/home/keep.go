package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"swarmdeck/engine/fleet"
)

// Of is the directory below a state directory of what is kept for one agent.
func Of(state string, a fleet.Agent) string { return filepath.Join(state, a.TenantID, a.Name) }

// Keep gives up what a state directory holds for others than the agents, but the
// directories that are named besides.
func Keep(state string, agents []fleet.Agent, besides ...string) error {
	kept := map[string]bool{}
	for _, a := range agents {
		kept[Of(state, a)] = true
	}
	for _, dir := range besides {
		kept[dir] = true
	}
	all, err := filepath.Glob(filepath.Join(state, "*", "*"))
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

// Forget gives up what is kept for an agent that was deleted.
func Forget(state string, a fleet.Agent) error {
	if err := os.RemoveAll(Of(state, a)); err != nil {
		return fmt.Errorf("remove what was kept for agent %s: %w", a.Name, err)
	}
	return nil
}
