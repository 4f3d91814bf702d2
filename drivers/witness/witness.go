// Package witness carries checkpoints of the audit log to where witnesses keep
// them: a file, a git repository of its own, or a command's stdin.
package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"sync"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/git"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/witness"
)

// Options of New.
type Options struct {
	Cells *cell.Supervisor // owns the commands and git
	Dir   string           // absolute; where commands run
	Own   *safeopen.Own    // the engine's own files, which are no witness
}

// Driver publishes and reads back. It is safe for concurrent use.
type Driver struct {
	opt   Options
	git   git.Git
	files sync.Mutex // held while a file is appended to
}

var _ witness.Driver = (*Driver)(nil)

// New makes a driver.
func New(opt Options) *Driver { return &Driver{opt: opt, git: git.Git{Cells: opt.Cells}} }

func (d *Driver) Publish(ctx context.Context, w witness.Witness, l witness.Line) error {
	switch w.Kind {
	case witness.File:
		return d.append(w.Path, l.Encode())
	case witness.Git:
		return d.commit(ctx, w, l)
	}
	return d.tell(ctx, w, l)
}

func (d *Driver) Held(ctx context.Context, w witness.Witness) iter.Seq2[audit.Kept, error] {
	if w.Kind == witness.Git {
		return d.commits(ctx, w)
	}
	return func(yield func(audit.Kept, error) bool) {
		root, err := d.opt.Own.Root(filepath.Dir(w.Path))
		if err != nil {
			yield(audit.Kept{}, err)
			return
		}
		defer root.Close()
		f, err := root.Open(filepath.Base(w.Path))
		if err != nil {
			yield(audit.Kept{}, err)
			return
		}
		defer f.Close()
		witness.Read(f)(yield)
	}
}

// append adds a line to a file, which it makes if need be. One that a crash cut
// short gets its end first.
func (d *Driver) append(path string, line []byte) error {
	d.files.Lock()
	defer d.files.Unlock()
	root, err := d.opt.Own.Root(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.Base(path)
	whole, err := endsLine(root, name)
	if err != nil {
		return err
	}
	if !whole {
		line = append([]byte{'\n'}, line...)
	}
	return root.At(name, func(p *safeopen.Place) error {
		_, err := p.Append(line)
		return err
	})
}

// endsLine reports whether a file ends with a line break, or is empty or not there.
func endsLine(root *safeopen.Root, name string) (bool, error) {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return true, err
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return last[0] == '\n', err
}

const maxComplaint = 300 // bytes of stderr that an error repeats

// tell gives a line to a command's stdin. Exit 0 says that it is kept.
func (d *Driver) tell(ctx context.Context, w witness.Witness, l witness.Line) error {
	if d.opt.Cells == nil {
		return core.Errorf(core.Unavailable, "no command can be started here")
	}
	complaint := ""
	lines := &pipe.Splitter{Max: maxComplaint, Emit: func(line []byte, _ int) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			complaint = ": " + pipe.Text(line)
		}
	}}
	exit, err := d.opt.Cells.Run(ctx, cell.Spec{
		Run: "witness-" + w.Name, Argv: w.Command, Dir: d.opt.Dir,
		Limits: cell.DefaultLimits(), Wall: cell.Wall{Profile: cell.Open},
	}, bytes.NewReader(l.Encode()), nil, lines)
	if err != nil {
		return err
	}
	lines.Close()
	if exit.Code != 0 {
		return fmt.Errorf("the command %s%s", exit.Describe(), complaint)
	}
	return nil
}
