package acp

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/workdir"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// there is a host: its keeper does for the agent what is done here for others.
type there struct {
	keeper.Place

	mu   sync.Mutex
	real string // the agent's directory, once known
}

var _ machine = (*there)(nil)

// askPatience is how long a host may take to answer for a file.
const askPatience = 10 * time.Second

// ask has the keeper do one thing. What is begun is done once, also when the link is
// lost meanwhile; one that takes too long is given up here.
func (t *there) ask(r workdir.Request) (a workdir.Answer, err error) {
	spec := t.Spec
	spec.Argv, spec.Env = []string{"files"}, nil
	p, err := t.Hosts.Start(spec.Whose.Tenant, t.Host, spec, keeper.Hosted{Desk: keeper.Files, Whole: true})
	if err != nil {
		return a, err
	}
	defer p.CloseIO()
	late, stop := context.WithTimeout(context.Background(), askPatience)
	defer stop()
	defer context.AfterFunc(late, p.CloseIO)()
	in, out, _ := p.Streams()
	if a, err = workdir.Ask(in, out, r); err != nil && late.Err() != nil {
		err = core.Errorf(core.Unavailable, "host %s does not answer within %s", t.Host, askPatience)
	}
	return a, err
}

// Real implements machine: it is "" while that is not known.
func (t *there) Real() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.real
}

// learn finds out where the agent's directory is.
func (t *there) learn() error {
	a, err := t.ask(workdir.Request{Op: workdir.OpReal})
	if err == nil && !filepath.IsAbs(a.Path) {
		err = core.Errorf(core.Unavailable, "host %s has no directory for the agent", t.Host)
	}
	if err != nil {
		return fmt.Errorf("find the agent's directory: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.real = a.Path
	return nil
}

func (t *there) Within(path string) (string, error) {
	real := t.Real()
	if real == "" {
		return "", core.Errorf(core.Unavailable, "host %s has not said where the agent's directory is", t.Host)
	}
	return workdir.Within(path, real, cmp.Or(t.Spec.Dir, real))
}

func (t *there) Sub(path string) (string, error) {
	a, err := t.ask(workdir.Request{Op: workdir.OpSub, Path: path})
	return a.Path, err
}

func (t *there) Read(path string, most int) ([]byte, error) {
	a, err := t.ask(workdir.Request{Op: workdir.OpRead, Path: path, Most: most})
	return a.Content, err
}

func (t *there) Write(path string, content []byte) (old []byte, err error) {
	a, err := t.ask(workdir.Request{Op: workdir.OpWrite, Path: path, Content: content})
	return a.Content, err
}

// Look implements machine. What the host can't be asked about is not bound, and is said
// not to be.
func (t *there) Look(spec cell.Spec) []judge.File {
	a, err := t.ask(workdir.Request{Op: workdir.OpLook, Path: cmp.Or(spec.Dir, t.Real()), Argv: spec.Argv, Env: spec.Env})
	if err != nil {
		return []judge.File{{Path: core.ClipTo(strings.Join(spec.Argv, " "), 200), Unbound: core.ClipTo(err.Error(), 200)}}
	}
	for _, text := range a.Texts {
		if len(text) > 0 {
			t.Pins.Keep(spec.Whose.Tenant, text)
		}
	}
	return a.Files
}

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
