package files

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// fewFiles are synced one by one where they are made again; more of them with all
// the file system.
const fewFiles = 16

// builder makes a tree by descriptors: nothing it makes is reached by a name
// that somebody else could have changed.
type builder struct {
	*store
	ctx  context.Context
	root bool // owners can be given

	open  []opened // the directories on the way to what is made
	files int
}

type opened struct {
	entry
	fd int
}

// build makes the tree of a manifest as name in dir, synced.
func (s *store) build(ctx context.Context, dir int, name string, all []entry) error {
	b := &builder{store: s, ctx: ctx, root: os.Geteuid() == 0}
	defer func() {
		for _, o := range b.open {
			_ = unix.Close(o.fd)
		}
	}()
	for _, e := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		at, base := dir, name
		if e.Path != "." {
			for len(b.open) > 1 && b.open[len(b.open)-1].Path != parent(e.Path) {
				if err := b.leave(); err != nil {
					return err
				}
			}
			at, base = b.open[len(b.open)-1].fd, filepath.Base(e.Path)
		}
		if err := b.make(at, base, e); err != nil {
			return fmt.Errorf("make %q: %w", e.Path, err)
		}
	}
	for len(b.open) > 0 {
		if err := b.leave(); err != nil {
			return err
		}
	}
	if b.files > fewFiles {
		return unix.Syncfs(dir)
	}
	return nil
}

func (b *builder) make(dir int, name string, e entry) error {
	switch e.Kind {
	case omitted:
		return nil
	case directory:
		if err := unix.Mkdirat(dir, name, 0o700); err != nil {
			return err
		}
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		b.open = append(b.open, opened{e, fd})
		return nil
	case link:
		if err := unix.Symlinkat(e.Target, dir, name); err != nil {
			return err
		}
		if b.root {
			if err := unix.Fchownat(dir, name, int(e.UID), int(e.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return err
			}
		}
		return unix.UtimesNanoAt(dir, name, []unix.Timespec{now(), unix.NsecToTimespec(e.Mtime)}, unix.AT_SYMLINK_NOFOLLOW)
	}
	return b.makeFile(dir, name, e)
}

func now() unix.Timespec { return unix.NsecToTimespec(time.Now().UnixNano()) }

// makeFile gives a file its content, and holds that against its digest.
func (b *builder) makeFile(dir int, name string, e entry) error {
	in, err := os.Open(b.contentPath(e.Sum))
	if os.IsNotExist(err) {
		return core.Errorf(core.NotFound, "snapshot: the content sha256:%s is not kept here any more", e.Sum).With("field", "snapshot")
	}
	if err != nil {
		return err
	}
	defer in.Close()
	fd, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(fd), name)
	defer out.Close()
	h := sha256.New()
	var size int64
	if unix.IoctlFileClone(fd, int(in.Fd())) == nil {
		size, err = io.Copy(h, out)
	} else {
		size, err = io.Copy(io.MultiWriter(out, h), in)
	}
	if err != nil {
		return err
	}
	if size != e.Size || digest(h.Sum(nil)) != e.Sum {
		return core.Errorf(core.Conflict, "snapshot: the content sha256:%s was damaged or changed", e.Sum).With("field", "snapshot")
	}
	if err := b.finish(fd, e); err != nil {
		return err
	}
	if b.files++; b.files <= fewFiles {
		return out.Sync()
	}
	return nil
}

// leave gives a directory what it can have only once all is in it.
func (b *builder) leave() error {
	o := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	defer unix.Close(o.fd)
	if err := b.finish(o.fd, o.entry); err != nil {
		return fmt.Errorf("make %q: %w", o.Path, err)
	}
	if b.files <= fewFiles {
		return unix.Fsync(o.fd)
	}
	return nil
}

// finish gives owner, mode and time.
func (b *builder) finish(fd int, e entry) error {
	if b.root {
		if err := unix.Fchown(fd, int(e.UID), int(e.GID)); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(fd, e.Mode); err != nil {
		return err
	}
	// By descriptor: the name may be another's by now.
	return unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), []unix.Timespec{now(), unix.NsecToTimespec(e.Mtime)}, 0)
}
