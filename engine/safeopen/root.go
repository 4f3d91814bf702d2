package safeopen

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// Root is a directory below which files are opened for others.
type Root struct {
	dir  *os.File
	path string
	own  *Own
}

// Root opens a directory, which whoever is trusted has named: links in its own
// path are followed. It can't be one of the engine's own, but for the place of
// a fork.
func (o *Own) Root(path string) (*Root, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	r := &Root{dir: f, path: path, own: o}
	if err := r.allowed(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return r, nil
}

// Close lets go of the directory.
func (r *Root) Close() error { return r.dir.Close() }

// allowed looks at the directories above the root. Forks are where agents
// work: what is in one is the fork's.
func (r *Root) allowed() error {
	if r.own == nil {
		return nil
	}
	n := r.own.now()
	at := r.dir
	for first := true; ; first = false {
		info, err := at.Stat()
		if err != nil {
			return err
		}
		id := inodeOf(info)
		switch {
		case n.forks[id] && !first:
			return at.Close()
		case n.dirs[id]:
			return refused(r.path)
		}
		fd, err := unix.Openat(int(at.Fd()), "..", atPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if at != r.dir {
			_ = at.Close()
		}
		if err != nil {
			return &fs.PathError{Op: "open", Path: r.path, Err: err}
		}
		at = os.NewFile(uintptr(fd), "..")
		above, err := at.Stat()
		if err != nil || inodeOf(above) == id { // the root of all
			return errors.Join(err, at.Close())
		}
	}
}

// Place is where a name leads: an entry of a directory that is held open.
type Place struct {
	dir  *os.File // opened with atPath
	base string
	name string // as given, for messages
	now  now
}

// Place finds a relative name below the root. What it names need not be there;
// the directories on the way must be, and be no links. ".." leads out of
// nothing: it is resolved before anything is opened.
func (r *Root) Place(name string) (*Place, error) {
	clean := filepath.Clean(name)
	if name == "" || !filepath.IsLocal(clean) || clean == "." || strings.IndexByte(name, 0) >= 0 {
		return nil, core.Invalid("path", name, "a path within "+r.path)
	}
	p := &Place{name: name, now: r.own.now()}
	fd, err := unix.Openat(int(r.dir.Fd()), ".", atPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for rest := clean; err == nil; {
		p.dir = os.NewFile(uintptr(fd), name)
		part, more, deeper := strings.Cut(rest, "/")
		if !deeper {
			p.base = part
			break
		}
		rest = more
		fd, err = step(int(p.dir.Fd()), part)
		if err == nil {
			err = p.passable(fd)
		}
		_ = p.dir.Close()
	}
	if err != nil {
		return nil, p.failed(err)
	}
	info, err := p.dir.Stat()
	if err == nil && p.now.named(inodeOf(info), p.base) {
		err = refused(name)
	}
	if err != nil {
		_ = p.dir.Close()
		return nil, err
	}
	return p, nil
}

// errLink says that a part of a path is a symbolic link.
var errLink = errors.New("a symbolic link, which is not followed")

// step opens a directory in another one.
func step(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, atPath|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		var st unix.Stat_t
		if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return -1, errLink
		}
	}
	return fd, err
}

// passable refuses to go through an own directory. The fd is closed then.
func (p *Place) passable(fd int) error {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err == nil && p.now.dirs[inode{uint64(st.Dev), st.Ino}] {
		err = refused(p.name)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return err
}

// failed gives an error of the system its path.
func (p *Place) failed(err error) error {
	var known *core.Error
	var at *fs.PathError
	switch {
	case errors.As(err, &known), errors.As(err, &at):
		return err
	case errors.Is(err, errLink), errors.Is(err, unix.ELOOP):
		return core.Errorf(core.InvalidInput, "path: %s is or leads through %v; name the file itself", p.name, errLink).With("field", "path")
	}
	return &fs.PathError{Op: "open", Path: p.name, Err: err}
}

// Close lets go of the place.
func (p *Place) Close() error { return p.dir.Close() }

// Look tells what is there, and refuses what is no regular file or the
// engine's own. Nothing is fs.ErrNotExist.
func (p *Place) Look() (fs.FileMode, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(p.dir.Fd()), p.base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, p.failed(err)
	}
	return fs.FileMode(st.Mode & 0o777), p.fits(&st)
}

func (p *Place) fits(st *unix.Stat_t) error {
	id := inode{uint64(st.Dev), st.Ino}
	what := "no regular file"
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if p.now.files[id] {
			return refused(p.name)
		}
		return nil
	case unix.S_IFLNK:
		return p.failed(errLink)
	case unix.S_IFDIR:
		if p.now.dirs[id] {
			return refused(p.name)
		}
		what = "a directory"
	}
	return core.Errorf(core.InvalidInput, "path: %s is %s", p.name, what).With("field", "path")
}

// open opens the file that is there: it is looked at before, so that no device
// is touched, and after, because another may have taken its place.
func (p *Place) open(flags int) (*os.File, error) {
	if _, err := p.Look(); err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(p.dir.Fd()), p.base, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, p.failed(err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		err = p.fits(&st)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, p.failed(err)
	}
	return os.NewFile(uintptr(fd), p.name), nil
}

// Open opens the file for reading.
func (p *Place) Open() (*os.File, error) { return p.open(unix.O_RDONLY) }

// At works on the place of a name below the root.
func (r *Root) At(name string, work func(*Place) error) error {
	p, err := r.Place(name)
	if err != nil {
		return err
	}
	defer p.Close()
	return work(p)
}

// Open opens a file below the root for reading.
func (r *Root) Open(name string) (*os.File, error) {
	p, err := r.Place(name)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Open()
}

// ErrTooLarge is the error of a file beyond its bound.
var ErrTooLarge = errors.New("the file is too large")

// Read reads a whole file, of at most most bytes, and its permissions.
func (p *Place) Read(most int) ([]byte, fs.FileMode, error) {
	f, err := p.Open()
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(data) > most {
		err = &fs.PathError{Op: "read", Path: p.name, Err: ErrTooLarge}
	}
	return data, info.Mode().Perm(), err
}

// Read reads a whole file below the root, of at most most bytes.
func (r *Root) Read(name string, most int) ([]byte, error) {
	p, err := r.Place(name)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	data, _, err := p.Read(most)
	return data, err
}

// List lists a directory below the root, at most most entries, in no order.
func (r *Root) List(name string, most int) ([]fs.DirEntry, error) {
	p, err := r.Place(name)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	fd, err := step(int(p.dir.Fd()), p.base)
	if err == nil {
		err = p.passable(fd)
	}
	if err != nil {
		return nil, p.failed(err)
	}
	defer unix.Close(fd)
	readable, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, p.failed(err)
	}
	dir := os.NewFile(uintptr(readable), name)
	defer dir.Close()
	all, err := dir.ReadDir(most + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && len(all) > most {
		err = core.Errorf(core.InvalidInput, "path: %s holds more than %d entries", name, most).With("field", "path")
	}
	return all, err
}
