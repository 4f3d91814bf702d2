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
	// start begins a process, if files are still what was judged; release is for when
	// that is over.
	start(spec cell.Spec, files []judge.File) (p keeper.Process, release func(), err error)
	// available reports why the agent's process can't be started now.
	available() error
}

// machine is where the agent of a place works.
func (p place) machine() machine {
	if p.there != nil {
		return p.there
	}
	return here{workdir.Dir{Cells: p.sup, Own: p.own, Pins: p.pins, Shelf: p.tenant, Spec: p.spec}}
}

// here is this machine.
type here struct{ workdir.Dir }

var _ machine = here{}

func (h here) start(spec cell.Spec, files []judge.File) (keeper.Process, func(), error) {
	var owner *pin.Owner
	if u := spec.User; u != nil {
		owner = &pin.Owner{UID: u.UID, GID: u.GID}
	}
	pins, err := h.Pins.Take(spec.Dir, files, owner)
	if err != nil {
		return nil, nil, err
	}
	spec.Pinned = pins.Pins
	p, err := h.Cells.Start(spec)
	if err != nil {
		pins.Release()
		return nil, nil, err
	}
	return keeper.NewHere(p), pins.Release, nil
}

func (h here) available() error { return h.Spec.Available() }
