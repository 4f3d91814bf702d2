package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// Limits bound a tree that a snapshot is taken of.
type Limits struct {
	Files int   // entries of all kinds
	Bytes int64 // of all files, as they read
	Depth int   // directories in directories
}

// DefaultLimits are generous for source trees and the data of a task, and keep
// a snapshot from filling the disk.
func DefaultLimits() Limits { return Limits{Files: 200_000, Bytes: 8 << 30, Depth: 100} }

// left counts what a snapshot leaves out.
type left struct {
	special int // pipes, sockets, devices
	mounts  int // of other file systems
	own     int // the engine's files
	out     int // links that lead out of the tree: kept, but as links
}

// walker goes through a tree by descriptors.
type walker struct {
	ctx    context.Context
	limits Limits
	own    string                     // the engine's data file, whose like are left out
	among  func(dev, ino uint64) bool // the same by inode, whatever they are called; nil is none
	root   string
	dev    uint64
	file   func(dir int, name string, e *entry, st *unix.Stat_t) error // reads a file's content
	skip   func(name string) bool                                      // what is not looked at; nil is nothing

	all   []entry
	stats []unix.Stat_t // of all
	bytes int64
	left  left
}

// errGone is what a part of the tree fails with that was removed meanwhile, and
// is left out; nothing else that is missing may shorten a snapshot.
var errGone = errors.New("it has gone meanwhile")

// gone marks the error of a call that looked for a name of the tree.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return err
}

// openBeneath opens a path no part of which is a link.
func openBeneath(path string, flags int) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW), Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// walk reads the tree at root, a clean absolute path.
func (w *walker) walk(root string) error {
	w.root = root
	fd, err := openBeneath(filepath.Dir(root), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	base := filepath.Base(root)
	if err := unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "look at", Path: root, Err: err}
	}
	w.dev = st.Dev
	if t := st.Mode & unix.S_IFMT; t != unix.S_IFDIR && t != unix.S_IFREG {
		return core.Invalid("path", root, "a file or a directory")
	}
	return w.entry(fd, base, ".", &st, 0)
}

// entry takes one name of a directory in.
func (w *walker) entry(dir int, name, path string, st *unix.Stat_t, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	e := entry{uid: st.Uid, gid: st.Gid, mtime: st.Mtim.Nano(), path: path}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.kind, e.mode = directory, st.Mode&dirModes
	case unix.S_IFREG:
		e.kind, e.mode, e.size = regular, st.Mode&fileModes, st.Size
	case unix.S_IFLNK:
		e.kind, e.mode = link, 0o777
	default:
		w.left.special++
		return nil
	}
	if len(w.all) >= w.limits.Files {
		return core.Errorf(core.InvalidInput, "path: %s holds more than %d files and directories", w.root, w.limits.Files).With("field", "path")
	}
	if e.kind == regular {
		if w.bytes += e.size; w.bytes > w.limits.Bytes {
			return core.Errorf(core.InvalidInput, "path: %s holds more than %d bytes; %q alone has %d", w.root, w.limits.Bytes, path, e.size).With("field", "path")
		}
		was := e.size
		if err := w.file(dir, name, &e, st); err != nil {
			return w.explain(path, err)
		}
		w.bytes += e.size - was
	}
	if e.kind == link {
		target, err := readlink(dir, name)
		if err != nil {
			return w.explain(path, gone(err))
		}
		e.target = target
		if leadsOut(path, target) {
			w.left.out++
		}
	}
	w.all, w.stats = append(w.all, e), append(w.stats, *st)
	if e.kind != directory {
		return nil
	}
	if depth >= w.limits.Depth {
		return core.Errorf(core.InvalidInput, "path: %s is more than %d directories deep at %q", w.root, w.limits.Depth, path).With("field", "path")
	}
	return w.directory(dir, name, path, depth)
}

func (w *walker) directory(dir int, name, path string, depth int) error {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return w.explain(path, gone(err))
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var names []string
	for {
		some, err := f.Readdirnames(1024)
		names = append(names, some...)
		if len(names) > w.limits.Files {
			return core.Errorf(core.InvalidInput, "path: %s holds more than %d files and directories", w.root, w.limits.Files).With("field", "path")
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return w.explain(path, err)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if w.skip != nil && w.skip(name) {
			continue
		}
		var st unix.Stat_t
		err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.ENOENT) {
			continue // it has gone meanwhile
		}
		below := name
		if path != "." {
			below = path + "/" + name
		}
		if err != nil {
			return w.explain(below, err)
		}
		if w.owned(below) || w.among != nil && w.among(st.Dev, st.Ino) {
			w.left.own++
			continue
		}
		if st.Dev != w.dev {
			w.left.mounts++
			continue
		}
		if err := w.entry(fd, name, below, &st, depth+1); err != nil {
			if errors.Is(err, errGone) {
				continue
			}
			return err
		}
	}
	return nil
}

// owned reports files of the engine itself, which change with every snapshot.
func (w *walker) owned(path string) bool {
	if w.own == "" || inside(w.root, w.own+".trees") {
		return false
	}
	full := filepath.Join(w.root, path)
	return full == w.own || strings.HasPrefix(full, w.own+".") || strings.HasPrefix(full, w.own+"-")
}

func (w *walker) explain(path string, err error) error {
	var refused *core.Error
	if err == nil || errors.As(err, &refused) || w.ctx.Err() != nil {
		return err
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return core.Errorf(core.Denied, "path: %q of %s can't be read: %v", path, w.root, err).With("field", "path")
	}
	return fmt.Errorf("read %q of %s: %w", path, w.root, err)
}

// leadsOut reports a link whose text leads out of its tree, without a look at
// what is there.
func leadsOut(path, target string) bool {
	if filepath.IsAbs(target) {
		return true
	}
	joined := filepath.Join(parent(path), target)
	return joined == ".." || strings.HasPrefix(joined, "../")
}

func readlink(dir int, name string) (string, error) {
	for size := 256; ; size *= 2 {
		b := make([]byte, size)
		n, err := unix.Readlinkat(dir, name, b)
		if err != nil {
			return "", err
		}
		if n < size {
			return string(b[:n]), nil
		}
	}
}
