package files

import (
	"errors"
	"os"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// reader takes the contents of files in, in a tree that was walked.
type reader struct {
	*walker
	batch *batch
	top   int // the tree's descriptor
	done  atomic.Int64
}

// read takes in what some of the entries stand for, and leaves those out that have gone
// meanwhile.
func (r *reader) read(all []entry, some []*entry) ([]entry, error) {
	if len(some) == 0 {
		return all, nil
	}
	top, err := openBeneath(r.root, unix.O_PATH)
	if err != nil {
		return nil, gone(err)
	}
	defer unix.Close(top)
	r.top = top
	err = r.split(len(some), 1, func(n int) error {
		e := some[n]
		err := r.file(e)
		if errors.Is(err, errGone) && e.Path != "." { // of which nothing would be left
			e.Kind, err = 0, nil
		}
		r.done.Add(1)
		return r.explain(e.Path, err)
	})
	return slices.DeleteFunc(all, func(e entry) bool { return e.Kind == 0 }), err
}

// file takes a file's content in. A file that changes meanwhile is read again, a few
// times; one that never stands still is kept as it was read last.
func (r *reader) file(e *entry) error {
	for try := 0; ; try++ {
		f, err := r.open(e.Path)
		if err != nil {
			return err
		}
		var before, after unix.Stat_t
		err = unix.Fstat(int(f.Fd()), &before)
		if err == nil && (before.Mode&unix.S_IFMT != unix.S_IFREG || before.Dev != r.dev) {
			err = gone(unix.ENOENT) // another took its place
		}
		if err == nil {
			err = r.grown(e, before.Size)
		}
		if err == nil {
			e.Sum, e.Size, err = r.batch.take(f, before.Size)
		}
		if err == nil {
			err = unix.Fstat(int(f.Fd()), &after)
		}
		_ = f.Close()
		if err != nil {
			return err
		}
		if before.Mtim == after.Mtim && before.Ctim == after.Ctim && e.Size == after.Size || try == 2 {
			e.Mode, e.Mtime, e.UID, e.GID, e.at = after.Mode&fileModes, after.Mtim.Nano(), after.Uid, after.Gid, whereOf(&after)
			return nil
		}
	}
}

// grown refuses a file that grew beyond the limits since it was found.
func (r *reader) grown(e *entry, size int64) error {
	if size <= e.Size {
		return nil
	}
	if sum := r.bytes.Add(size - e.Size); size > r.limits.File || sum > r.limits.Bytes {
		return core.Errorf(core.InvalidInput, "path: %q grows beyond what a snapshot of %s may hold", e.Path, r.root).With("field", "path")
	}
	e.Size = size
	return nil
}

// open opens a file of the tree, with no link on the way.
func (r *reader) open(path string) (*os.File, error) {
	if path == "." { // the tree is that file
		fd, err := openBeneath(r.root, unix.O_RDONLY|unix.O_NONBLOCK)
		if err != nil {
			return nil, gone(err)
		}
		return os.NewFile(uintptr(fd), path), nil
	}
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(r.top, path, how)
	if err != nil {
		return nil, gone(err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
