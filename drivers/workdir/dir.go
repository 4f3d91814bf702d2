// Package workdir does for an agent what it asks for with the files of its work
// directory, on the machine where that is: here, or where a host's keeper answers
// requests of the engine (Request, Answer).
//
// No link is followed, and nothing outside of the directory is reached, whatever
// changes meanwhile.
package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/safeopen"
)

// MaxFile bounds a file that is read or written for an agent, in bytes.
const MaxFile = 4 << 20

// Dir is an agent's work directory on this machine.
type Dir struct {
	Cells *cell.Supervisor
	Own   *safeopen.Own // files that are opened for no agent
	Pins  *pin.Keeper   // nil binds nothing
	Shelf string        // under which Pins keeps what it has seen: the tenant
	Spec  cell.Spec     // of the agent's process
}

// Real is its path without symbolic links, so that an agent that resolves them
// finds itself within.
func (d Dir) Real() string {
	if real, err := filepath.EvalSymlinks(d.Spec.Dir); err == nil {
		return real
	}
	return d.Spec.Dir
}

// Within is a path relative to the directory. Names alone can't tell where links
// lead: what opens it must not follow them out.
func (d Dir) Within(path string) (string, error) {
	return Within(path, d.Real(), d.Spec.Dir)
}

// Within is a path relative to the first of some names of a directory that it is
// within.
func Within(path string, dirs ...string) (string, error) {
	if !filepath.IsAbs(path) || strings.IndexByte(path, 0) >= 0 {
		return "", core.Invalid("path", path, "an absolute path")
	}
	for _, dir := range dirs {
		rel, err := filepath.Rel(dir, filepath.Clean(path))
		if err == nil && filepath.IsLocal(rel) {
			return rel, nil
		}
	}
	return "", core.Invalid("path", path, "a path within "+dirs[len(dirs)-1])
}

// Sub is a directory within it, without links.
func (d Dir) Sub(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", core.Invalid("cwd", path, "an existing directory")
	}
	if _, err := d.Within(real); err != nil {
		return "", core.Invalid("cwd", path, "a directory within "+d.Spec.Dir)
	}
	return real, nil
}

// at works on a place in the directory.
func (d Dir) at(path string, work func(*safeopen.Place) error) error {
	rel, err := d.Within(path)
	if err != nil {
		return err
	}
	hidden, err := d.Cells.Hidden(d.Spec, filepath.Join(d.Real(), rel))
	if err == nil && hidden {
		err = fmt.Errorf("%s is hidden: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	root, err := d.Own.Root(d.Spec.Dir)
	if err != nil {
		return fmt.Errorf("open the agent's directory: %w", err)
	}
	defer root.Close()
	return root.At(rel, work)
}

// Read reads a file of at most so many bytes; an error that wraps
// safeopen.ErrTooLarge says that it has more.
func (d Dir) Read(path string, most int) (data []byte, err error) {
	err = d.at(path, func(at *safeopen.Place) error {
		data, _, err = at.Read(most)
		return err
	})
	return data, err
}

// Write replaces a file as a whole, and returns what was in it. A link is not
// written through: what was asked for names the file that changes.
func (d Dir) Write(path string, content []byte) (old []byte, err error) {
	if len(content) > MaxFile {
		return nil, core.Errorf(core.InvalidInput, "content has more than %d bytes", MaxFile)
	}
	if d.Spec.Wall.Profile == cell.Reader {
		return nil, core.Errorf(core.Denied, "a reader writes no files")
	}
	err = d.at(path, func(at *safeopen.Place) error {
		old, _, err = at.Read(MaxFile)
		if errors.Is(err, safeopen.ErrTooLarge) {
			return TooLarge()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_, err = at.Put(content, func(f *os.File) error {
			if u := d.Spec.User; u != nil {
				return f.Chown(int(u.UID), int(u.GID))
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return old, nil
}

// TooLarge is the error of a file with more than MaxFile bytes.
func TooLarge() error {
	return core.Errorf(core.InvalidInput, "the file has more than %d bytes", MaxFile)
}

// Look finds the files that a command names, as they are now.
func (d Dir) Look(spec cell.Spec) []judge.File { return d.Pins.Look(d.Shelf, spec.Line()) }
