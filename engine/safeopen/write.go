package safeopen

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// newFile is the mode of a new file; the umask takes from it.
const newFile = 0o644

// Create makes a file that is not there yet. It is there with all of its
// content, which is on the disk, or not at all. A crash leaves nothing else, where
// the file system has files without names.
func (p *Place) Create(content []byte) error {
	return p.put(content, nil, func(f *draft) error {
		if f.temp == "" {
			return called(f.fd, f.dir, p.base)
		}
		err := renameNew(f.dir, f.temp, p.base)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // this file system can't
			if err = unix.Linkat(f.dir, f.temp, f.dir, p.base, 0); err == nil {
				err = unix.Unlinkat(f.dir, f.temp, 0)
			}
		}
		return err
	})
}

// Put makes a new file, or puts it in the place of the one that is there, with
// its permissions: another name of that one keeps its content. finish works on
// the new file before it has its name; nil does nothing.
func (p *Place) Put(content []byte, finish func(*os.File) error) (created bool, err error) {
	perm, err := p.Look()
	created = errors.Is(err, fs.ErrNotExist)
	if err != nil && !created {
		return false, err
	}
	return created, p.put(content, func(f *os.File) error {
		var err error
		if !created {
			err = f.Chmod(perm)
		}
		if err == nil && finish != nil {
			err = finish(f)
		}
		return err
	}, func(f *draft) error {
		if f.temp == "" {
			f.temp = tempName()
			if err := called(f.fd, f.dir, f.temp); err != nil {
				return err
			}
		}
		return unix.Renameat(f.dir, f.temp, f.dir, p.base)
	})
}

// draft is a file that is written before it has its name.
type draft struct {
	fd, dir int
	temp    string // what it is called meanwhile; "" is nothing
}

func tempName() string { return ".swarmdeck-" + rand.Text() }

// put writes a file beside its place and moves it there once all of it is on
// the disk.
func (p *Place) put(content []byte, finish func(*os.File) error, move func(*draft) error) (err error) {
	d := draft{dir: int(p.dir.Fd())}
	if d.fd, err = unnamed(d.dir); err != nil {
		d.temp = tempName()
		d.fd, err = unix.Openat(d.dir, d.temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, newFile)
	}
	if err != nil {
		return p.failed(err)
	}
	f := os.NewFile(uintptr(d.fd), p.name)
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err == nil {
			err = p.sync()
		}
		if err != nil {
			if d.temp != "" {
				_ = unix.Unlinkat(d.dir, d.temp, 0)
			}
			err = p.failed(err)
		}
	}()
	if _, err = f.Write(content); err == nil && finish != nil {
		err = finish(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = move(&d)
	}
	return err
}

// Append writes at the end of a file, which it makes if need be. A crash may
// leave a part of the content.
func (p *Place) Append(content []byte) (created bool, err error) {
	f, err := p.open(unix.O_WRONLY | unix.O_APPEND)
	if errors.Is(err, fs.ErrNotExist) {
		created = true
		var fd int
		fd, err = unix.Openat(int(p.dir.Fd()), p.base, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, newFile)
		f = os.NewFile(uintptr(fd), p.name)
	}
	if err != nil {
		return false, p.failed(err)
	}
	defer f.Close()
	n, err := f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return created, fmt.Errorf("after %d of %d bytes: %w", n, len(content), err)
	}
	if created {
		err = p.sync()
	}
	return created, err
}

// Link gives the file a second name, which must be free.
func (p *Place) Link(to *Place) error {
	if err := unix.Linkat(int(p.dir.Fd()), p.base, int(to.dir.Fd()), to.base, 0); err != nil {
		return to.failed(err)
	}
	return to.sync()
}

// Move gives the file another name, in place of what has it.
func (p *Place) Move(to *Place) error {
	if err := unix.Renameat(int(p.dir.Fd()), p.base, int(to.dir.Fd()), to.base); err != nil {
		return to.failed(err)
	}
	return to.sync()
}

// sync puts what the directory holds on the disk.
func (p *Place) sync() error {
	fd, err := unix.Openat(int(p.dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fsync(fd), unix.Close(fd))
}

// Mkdir makes a directory; one that is there already is as good.
func (p *Place) Mkdir() error {
	err := unix.Mkdirat(int(p.dir.Fd()), p.base, 0o755)
	switch {
	case errors.Is(err, unix.EEXIST):
		var fd int
		if fd, err = step(int(p.dir.Fd()), p.base); err == nil {
			err = unix.Close(fd)
		}
	case err == nil:
		err = p.sync()
	}
	if err != nil {
		return p.failed(err)
	}
	return nil
}

// Remove removes the file that is there.
func (p *Place) Remove() error {
	if _, err := p.Look(); err != nil {
		return err
	}
	if err := unix.Unlinkat(int(p.dir.Fd()), p.base, 0); err != nil {
		return p.failed(err)
	}
	return p.sync()
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Replace puts content in the place of a file of the engine's own: a crash leaves it as it
// was or as it is to be, and once it is replaced it stays so.
func Replace(path string, content []byte) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}
