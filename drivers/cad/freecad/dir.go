package freecad

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const dirPrefix = "swarmdeck-freecad-"

// dir is a private directory of one worker. Whoever uses it holds a lock on it,
// so that what a crash left behind is known as such, and swept away by the next
// one that is made.
type dir struct {
	path string
	lock *os.File
}

// newDir makes a directory in another, "" for the system's own for such.
func newDir(parent string) (*dir, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	left, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("look for directories left behind: %w", err)
	}
	for _, path := range left {
		if old := take(path); old != nil {
			old.remove()
		}
	}
	path, err := os.MkdirTemp(parent, dirPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a directory for FreeCAD: %w", err)
	}
	d := take(path)
	if d == nil {
		return nil, fmt.Errorf("lock %s: another process took it", path)
	}
	return d, nil
}

// take locks a directory; nil when another holds it, or it is not ours.
func take(path string) *dir {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || int(st.Uid) != os.Geteuid() || unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil
	}
	return &dir{path: path, lock: f}
}

// remove is best effort: what stays is swept later.
func (d *dir) remove() {
	_ = os.RemoveAll(d.path)
	d.lock.Close()
}
