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
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// Limits bound a tree that a snapshot is taken of.
type Limits struct {
	Files int   // entries of all kinds
	Bytes int64 // of all files, as they read
	File  int64 // of one file: a larger one is left out
	Depth int   // directories in directories
}

// DefaultLimits are generous for source trees and the data of a task, and keep
// a snapshot from filling the disk.
func DefaultLimits() Limits {
	return Limits{Files: 200_000, Bytes: 12 << 30, File: 1 << 30, Depth: 100}
}

// left counts what a snapshot leaves out.
type left struct {
	special int      // pipes, sockets, devices
	mounts  int      // of other file systems
	own     int      // the engine's files
	out     int      // links that lead out of the tree: kept, but as links
	ignored []string // files and directories that an ignoreFile names
	large   []string // files beyond the limit
	pipes   []string // those that are special
}

// walker goes through a tree by descriptors, a few directories at a time. It reads no
// file.
type walker struct {
	ctx    context.Context
	limits Limits
	own    string                     // the engine's data file, whose like are left out
	among  func(dev, ino uint64) bool // the same by inode, whatever they are called; nil is none
	skip   func(name string) bool     // what is not looked at; nil is nothing
	all    bool                       // no rule leaves anything out
	then   map[string]string          // rules that hold besides, by directory
	force  bool                       // directories that can't be read are made so
	root   string
	dev    uint64

	seen, bytes atomic.Int64
	free        chan struct{} // a place for each goroutine beside the first

	mu   sync.Mutex
	left left
}

// branch is what was found in a directory, by name, and below it.
type branch struct {
	all   []entry
	below map[int]*branch // of those of all that are directories
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

// walk looks through the tree at root, a clean absolute path. Its entries come in the
// order in which they can be made.
func (w *walker) walk(root string) ([]entry, error) {
	w.root, w.free = root, make(chan struct{}, walkers-1)
	fd, err := openBeneath(filepath.Dir(root), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	base := filepath.Base(root)
	if err := unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, &os.PathError{Op: "look at", Path: root, Err: err}
	}
	w.dev = st.Dev
	if t := st.Mode & unix.S_IFMT; t != unix.S_IFDIR && t != unix.S_IFREG {
		return nil, core.Invalid("path", root, "a file or a directory")
	}
	top, err := w.entry(fd, base, ".", &st)
	if err != nil {
		return nil, err
	}
	all := []entry{top}
	if top.Kind == directory {
		b, err := w.directory(fd, base, ".", 0, [2]*rules{})
		if err != nil {
			return nil, err
		}
		all = b.flatten(slices.Grow(all, int(w.seen.Load())))
	}
	return all, nil
}

func (b *branch) flatten(all []entry) []entry {
	for n, e := range b.all {
		all = append(all, e)
		if below := b.below[n]; below != nil {
			all = below.flatten(all)
		}
	}
	return all
}

// entry makes one of a name in a directory; of another kind than a tree holds it has
// none.
func (w *walker) entry(dir int, name, path string, st *unix.Stat_t) (e entry, err error) {
	e = entry{UID: st.Uid, GID: st.Gid, Mtime: st.Mtim.Nano(), Path: path, at: whereOf(st)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.Kind, e.Mode = directory, st.Mode&dirModes
	case unix.S_IFREG:
		e.Kind, e.Mode, e.Size = regular, st.Mode&fileModes, st.Size
	case unix.S_IFLNK:
		e.Kind, e.Mode = link, 0o777
		if e.Target, err = readlink(dir, name); err != nil {
			return e, w.explain(path, gone(err))
		}
	default:
		w.count(func(l *left) { l.special++; l.pipes = append(l.pipes, path) })
		return e, nil
	}
	if w.seen.Add(1) > int64(w.limits.Files) {
		return e, w.tooMany()
	}
	if sum := w.bytes.Add(e.Size); sum > w.limits.Bytes {
		return e, core.Errorf(core.InvalidInput, "path: %s holds more than %d bytes; %q alone has %d", w.root, w.limits.Bytes, path, e.Size).With("field", "path")
	}
	if e.Kind == link && leadsOut(path, e.Target) {
		w.count(func(l *left) { l.out++ })
	}
	return e, nil
}

func (w *walker) tooMany() error {
	return core.Errorf(core.InvalidInput, "path: %s holds more than %d files and directories", w.root, w.limits.Files).With("field", "path")
}

func (w *walker) count(what func(*left)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what(&w.left)
}

// directory finds what is in a directory and below, where the rules of the directories
// above hold: those of now and those of then.
func (w *walker) directory(dir int, name, path string, depth int, above [2]*rules) (*branch, error) {
	if depth >= w.limits.Depth {
		return nil, core.Errorf(core.InvalidInput, "path: %s is more than %d directories deep at %q", w.root, w.limits.Depth, path).With("field", "path")
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if w.force && errors.Is(err, unix.EACCES) {
		fd, err = openHere(dir, name)
	}
	if err != nil {
		return nil, w.explain(path, gone(err))
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	names, err := w.names(f, path)
	if err != nil {
		return nil, err
	}
	here := above
	if _, there := slices.BinarySearch(names, ignoreFile); there && !w.all && !inGit(path) {
		here[0] = above[0].below(path, readIgnored(fd))
	}
	if text := w.then[path]; text != "" {
		here[1] = above[1].below(path, text)
	}
	b := &branch{all: make([]entry, len(names))}
	err = w.split(len(names), statsAtOnce, func(n int) (err error) {
		b.all[n], err = w.find(fd, names[n], path, here)
		return err
	})
	if err != nil {
		return nil, err
	}
	b.all = slices.DeleteFunc(b.all, func(e entry) bool { return e.Kind == 0 })
	var dirs []int
	for n, e := range b.all {
		if e.Kind == directory {
			dirs = append(dirs, n)
		}
	}
	below := make([]*branch, len(dirs))
	err = w.split(len(dirs), 1, func(n int) (err error) {
		e := b.all[dirs[n]]
		below[n], err = w.directory(fd, filepath.Base(e.Path), e.Path, depth+1, here)
		if errors.Is(err, errGone) {
			err = nil
		}
		return err
	})
	b.below = make(map[int]*branch, len(dirs))
	for n, at := range dirs {
		b.below[at] = below[n]
	}
	return b, err
}

// names are those in a directory, in order.
func (w *walker) names(f *os.File, path string) (names []string, err error) {
	for {
		some, err := f.Readdirnames(1024)
		names = append(names, some...)
		if len(names) > w.limits.Files {
			return nil, w.tooMany()
		}
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, w.explain(path, err)
		}
	}
}

// find looks at one name of a directory. What is left out has no kind.
func (w *walker) find(dir int, name, path string, here [2]*rules) (e entry, err error) {
	if w.skip != nil && w.skip(name) {
		return e, nil
	}
	var st unix.Stat_t
	err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return e, nil // it has gone meanwhile
	}
	below := name
	if path != "." {
		below = path + "/" + name
	}
	switch {
	case err != nil:
		return e, w.explain(below, err)
	case w.owned(below) || w.among != nil && w.among(st.Dev, st.Ino):
		w.count(func(l *left) { l.own++ })
	case st.Dev != w.dev:
		w.count(func(l *left) { l.mounts++ })
	case here[0].ignores(below, isDir(&st)) || here[1].ignores(below, isDir(&st)):
		w.count(func(l *left) { l.ignored = append(l.ignored, below) })
		if w.seen.Add(1) > int64(w.limits.Files) {
			return e, w.tooMany()
		}
	case !w.all && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size > w.limits.File:
		w.count(func(l *left) { l.large = append(l.large, below) })
		e = entry{Kind: omitted, Path: below}
	default:
		e, err = w.entry(dir, name, below, &st)
		if errors.Is(err, errGone) {
			return entry{}, nil
		}
	}
	return e, err
}

func isDir(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }

const (
	walkers     = 4   // goroutines that look through a tree
	statsAtOnce = 256 // names of a directory that one of them takes at a time
)

// split does something for each number below n, several in a row, beside each other as
// far as there is room, and returns when all is done.
func (w *walker) split(n, row int, do func(int) error) error {
	var rows sync.WaitGroup
	var once sync.Once
	var failed error
	var stop atomic.Bool
	for from := 0; from < n && !stop.Load(); from += row {
		work := func() {
			err := w.ctx.Err()
			for i := from; i < min(from+row, n) && err == nil && !stop.Load(); i++ {
				err = do(i)
			}
			if err != nil {
				once.Do(func() { failed = err })
				stop.Store(true)
			}
		}
		select {
		case w.free <- struct{}{}:
			rows.Go(func() {
				work()
				<-w.free
			})
		default:
			work()
		}
	}
	rows.Wait()
	return failed
}

// owned reports files of the engine itself, which change with every snapshot.
func (w *walker) owned(path string) bool {
	if w.own == "" || inside(w.root, w.own+".run") {
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
