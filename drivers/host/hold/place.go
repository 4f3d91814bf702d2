package hold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/drivers/workdir"
	"swarmdeck/engine/core"
)

// start begins a process in a cell of this host, or what is done in its place; after
// is what is left to do once it is over.
func (k *holder) start(run string, s *wire.Start) (p keeper.Process, after func(), err error) {
	spec, err := k.spec(run, s)
	if err != nil {
		return nil, nil, err
	}
	switch s.Desk {
	case keeper.Files:
		dir := workdir.Dir{Cells: k.sup, Own: k.own, Pins: k.pins, Shelf: shelf, Spec: spec}
		p, err = newJob(func(_ context.Context, in io.Reader, out io.Writer) error { return dir.Serve(in, out) })
		return p, nil, err
	case keeper.Trees:
		p, err = newJob(k.trees.Serve)
		return p, nil, err
	}
	set, err := k.pins.Take(spec.Dir, s.Files, nil)
	if err != nil {
		return nil, nil, err
	}
	spec.Pinned = set.Pins
	proc, err := k.sup.Start(spec)
	if err != nil {
		set.Release()
		return nil, nil, err
	}
	return keeper.NewHere(proc), set.Release, nil
}

// shelf is where the keeper has what files held that were looked at.
const shelf = "host"

// spec is how an agent's process is run here.
func (k *holder) spec(run string, s *wire.Start) (spec cell.Spec, err error) {
	profile, err := cell.ParseProfile("profile", s.Profile)
	if err != nil {
		return spec, err
	}
	if !core.IsAgent(s.Agent) {
		return spec, fmt.Errorf("no agent can have the name %q", s.Agent)
	}
	place := filepath.Join(k.dir, homesName, s.Agent)
	home, work := filepath.Join(place, "home"), filepath.Join(place, "work")
	for _, dir := range []string{home, work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return spec, err
		}
	}
	spec = cell.Spec{
		Run: runName(s.Agent, run), Argv: s.Argv, Dir: s.Dir, Env: s.Env, Limits: s.Limits.Cell(),
		Whose: cell.Whose{Agent: s.Agent, Role: s.Role},
		Wall:  cell.Wall{Profile: profile, Told: true, Reach: s.Ports, Guard: s.Guard}, Terminal: s.Terminal,
	}
	if len(s.Ports) > 0 { // what leads there may be this program
		spec.Wall.Read = []string{k.program}
	}
	spec.Wall.Read = append(spec.Wall.Read, k.trees.Reads(s.Agent)...)
	spec.Dir = cmp.Or(spec.Dir, work)
	if _, given := s.Env["HOME"]; !given && profile != cell.Open {
		spec.Wall.Home = home
	}
	return spec, nil
}

// tidy removes the places of agents that are no more.
func (k *holder) tidy(agents []string) {
	there, err := os.ReadDir(filepath.Join(k.dir, homesName))
	if err != nil || len(agents) > wire.MaxRuns {
		return
	}
	for _, e := range there {
		if !slices.Contains(agents, e.Name()) {
			_ = files.RemoveTree(filepath.Join(k.dir, homesName, e.Name()))
		}
	}
	_ = k.trees.Tidy(agents)
}

var digests = core.Pattern(`^[0-9a-f]{64}$`)

// removed removes a keeper's directory and, if it was the last one, what else is
// there of ours.
func removed(dir string) error {
	above := filepath.Dir(dir)
	if err := files.RemoveTree(dir); err != nil {
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
