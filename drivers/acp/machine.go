package acp

import (
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/workdir"
	"swarmdeck/engine/judge"
)

// machine is where an agent works: this one, or a host. Its directory is that of the
// agent, by absolute paths of the machine.
type machine interface {
	// Real is the directory without links, Within a path relative to it, and Sub a
	// directory within it, without links.
	Real() string
	Within(path string) (string, error)
	Sub(path string) (string, error)
	// Read reads a file of at most so many bytes, and Write replaces one.
	Read(path string, most int) ([]byte, error)
	Write(path string, content []byte) (old []byte, err error)
	// Look finds the files that a command names, as they are now.
	Look(spec cell.Spec) []judge.File
}

// machine is where the agent of a place works.
func (p place) machine() machine {
	if p.there != nil {
		return p.there
	}
	return workdir.Dir{Cells: p.Cells, Own: p.Own, Pins: p.Pins, Shelf: p.Spec.Whose.Tenant, Spec: p.Spec}
}

// run begins a process beside the agent's own, if files are still what was judged; release
// is for when that is over.
func (p place) run(spec cell.Spec, files []judge.File) (proc keeper.Process, release func(), err error) {
	there := p.There
	there.Files, release = files, func() {}
	if p.Host == "" {
		var owner *pin.Owner
		if u := spec.User; u != nil {
			owner = &pin.Owner{UID: u.UID, GID: u.GID}
		}
		pins, err := p.Pins.Take(spec.Dir, files, owner)
		if err != nil {
			return nil, nil, err
		}
		spec.Pinned, release = pins.Pins, pins.Release
	}
	if proc, err = keeper.Begin(p.Cells, p.Hosts, p.Host, spec, there); err != nil {
		release()
		return nil, nil, err
	}
	return proc, release, nil
}
