package hold

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/engine/core"
)

var agentName = core.Pattern(`^[a-zA-Z0-9-]{1,20}$`)

// start begins a process in a cell of this host.
func (k *keeper) start(s *wire.Start) (*cell.Process, error) {
	profile, err := cell.ParseProfile("profile", s.Profile)
	if err != nil {
		return nil, err
	}
	if !agentName().MatchString(s.Agent) {
		return nil, fmt.Errorf("no agent can have the name %q", s.Agent)
	}
	place := filepath.Join(k.dir, homesName, s.Agent)
	home, work := filepath.Join(place, "home"), filepath.Join(place, "work")
	for _, dir := range []string{home, work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	spec := cell.Spec{
		Run: "agent:" + s.Agent, Argv: s.Argv, Dir: s.Dir, Env: s.Env, Limits: s.Limits.Cell(),
		Whose: cell.Whose{Agent: s.Agent, Role: s.Role},
		Wall:  cell.Wall{Profile: profile, Told: true},
	}
	if spec.Dir == "" {
		spec.Dir = work
	}
	if _, given := s.Env["HOME"]; !given && profile != cell.Open {
		spec.Wall.Home = home
	}
	return k.sup.Start(spec)
}

// tidy removes the places of agents that are no more.
func (k *keeper) tidy(agents []string) {
	there, err := os.ReadDir(filepath.Join(k.dir, homesName))
	if err != nil || len(agents) > wire.MaxRuns {
		return
	}
	for _, e := range there {
		if !slices.Contains(agents, e.Name()) {
			_ = os.RemoveAll(filepath.Join(k.dir, homesName, e.Name()))
		}
	}
}

var digests = core.Pattern(`^[0-9a-f]{64}$`)

// removed removes a keeper's directory and, if it was the last one, what else is
// there of ours.
func removed(dir string) error {
	above := filepath.Dir(dir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	there, err := os.ReadDir(above)
	if err != nil || slices.ContainsFunc(there, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), Prefix) }) {
		return err
	}
	for _, e := range there {
		if digests().MatchString(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(above, e.Name())))
		}
	}
	_ = os.Remove(above) // unless it holds something else
	return err
}

// Prefix begins the names of keepers' directories, which end with their ids.
const Prefix = "keeper-"
