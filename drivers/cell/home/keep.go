package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

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
			errs = append(errs, remove(dir))
		}
	}
	return errors.Join(errs...)
}

// How Forget makes sure that a home stays away: what is still dying may write to
// it after it was removed.
const (
	settle  = 20 * time.Millisecond
	settled = 3  // looks in a row that find nothing
	mostTry = 50 // looks at all
)

// Forget gives up what is kept for an agent that was deleted.
func Forget(state string, a fleet.Agent) error {
	dir := Of(state, a)
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var err error
	for try, quiet := 0, 0; try < mostTry && quiet < settled; try++ {
		if _, gone := os.Lstat(dir); errors.Is(gone, os.ErrNotExist) {
			quiet++
		} else {
			quiet, err = 0, remove(dir)
		}
		time.Sleep(settle)
	}
	if err != nil {
		return fmt.Errorf("remove what was kept for agent %s: %w", a.Name, err)
	}
	return nil
}

// remove removes a directory, also what its agent has made read-only in it, as
// caches of modules are.
func remove(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil { // before it is read
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
