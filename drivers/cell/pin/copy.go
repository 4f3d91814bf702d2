package pin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/judge"
)

// Pinned is a file whose verified copy is to run.
type Pinned struct {
	Path string // where it lies, absolute and without links
	Copy string // the verified copy, absolute
}

// Set are the copies of one run.
type Set struct {
	Pins []Pinned
	dir  string
}

// Release removes the copies. It may be called more than once, and on nil.
func (s *Set) Release() {
	if s != nil && s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// Owner is who must be able to read the copies, where it is not the engine.
type Owner struct{ UID, GID uint32 }

// Take reads each of the files that were judged once more, and copies what is
// to run. An error that wraps judge.ErrChanged says that one is not what was
// judged. Release the set when the run has ended.
func (k *Keeper) Take(dir string, files []judge.File, owner *Owner) (_ *Set, err error) {
	set := &Set{}
	if k == nil || len(files) == 0 {
		return set, nil
	}
	defer func() {
		if err != nil {
			set.Release()
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the work directory: %w", err)
	}
	defer root.Close()
	for i := range files {
		f := &files[i]
		if f.Unbound != "" {
			continue
		}
		data, info, place, err := readFile(root, f.Path, maxFile)
		if err != nil || sum(data) != f.SHA256 || mode(info) != f.Mode {
			return nil, fmt.Errorf("%s %w", f.Path, judge.ErrChanged)
		}
		if !f.Runs {
			continue
		}
		to, err := k.copyOf(set, strconv.Itoa(i), f.Path)
		if err == nil {
			err = write(to, data, info.Mode().Perm()&0o111 != 0, owner)
		}
		if err != nil {
			return nil, fmt.Errorf("copy %s: %w", f.Path, err)
		}
		set.Pins = append(set.Pins, Pinned{Path: place, Copy: to})
	}
	return set, nil
}

// copyOf makes the place for one copy: it has the file's own name.
func (k *Keeper) copyOf(set *Set, sub, name string) (string, error) {
	if set.dir == "" {
		parent := k.runs
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return "", err
		}
		dir, err := os.MkdirTemp(parent, "run-")
		if err != nil {
			return "", err
		}
		set.dir = dir
	}
	dir := filepath.Join(set.dir, sub)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.Join(dir, path.Base(name)), nil
}

func write(to string, data []byte, exec bool, owner *Owner) error {
	perm := os.FileMode(0o400)
	if exec {
		perm = 0o500
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && owner != nil {
		err = f.Chown(int(owner.UID), int(owner.GID))
	}
	return errors.Join(err, f.Close())
}

// Sweep removes the copies that a former engine left.
func (k *Keeper) Sweep() error {
	if k == nil {
		return nil
	}
	if err := os.RemoveAll(k.runs); err != nil {
		return fmt.Errorf("remove the copies of a former engine: %w", err)
	}
	return nil
}

// Verify compares each file with its copy, without following a link: for a
// launcher that can't mount the copies, right before the command starts. Its
// error wraps judge.ErrChanged when one differs.
func Verify(pins []Pinned) error {
	for _, p := range pins {
		same, err := equal(p)
		if err != nil {
			return fmt.Errorf("%s %w: %w", p.Path, judge.ErrChanged, err)
		}
		if !same {
			return fmt.Errorf("%s %w", p.Path, judge.ErrChanged)
		}
	}
	return nil
}

func equal(p Pinned) (bool, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, p.Path, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or a container's filter
		fd, err = unix.Open(p.Path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	}
	if err != nil {
		return false, err
	}
	f := os.NewFile(uintptr(fd), p.Path)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	want, err := os.ReadFile(p.Copy)
	if err != nil {
		return false, err
	}
	got, err := io.ReadAll(io.LimitReader(f, int64(len(want))+1))
	return bytes.Equal(got, want), err
}
