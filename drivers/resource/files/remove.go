package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// unmounted refuses a tree with something mounted in it: what is mounted isn't
// the tree's, and would move away with it.
func unmounted(place string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("look for mounts: %w", err)
	}
	points, err := mountPoints(string(mounts))
	if err != nil {
		return fmt.Errorf("look for mounts: %w", err)
	}
	for _, point := range points {
		if inside(point, place) {
			return core.Errorf(core.Conflict, "resource: %q is mounted in %s; allowed: to unmount it first, or a destination of its own", point, place).With("field", "resource")
		}
	}
	return nil
}

// mountPoints reads the fifth field of every line, see proc_pid_mountinfo(5).
func mountPoints(mounts string) (points []string, err error) {
	escapes := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`)
	for line := range strings.Lines(mounts) {
		fields := strings.Split(line, " ")
		if len(fields) < 5 {
			return nil, fmt.Errorf("a line of mountinfo has %d fields", len(fields))
		}
		points = append(points, escapes.Replace(fields[4]))
	}
	return points, nil
}

// RemoveTree removes a tree with no link followed and no mount entered,
// directories that can't be written too. What isn't there is removed already.
func RemoveTree(path string) error {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer unix.Close(dir)
	return removeAt(dir, filepath.Base(path), path)
}

// removeAt removes a name of a directory; path is for errors.
func removeAt(dir int, name, path string) error {
	failed := func(err error) error {
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return failed(err) // a file; of one that is mounted EBUSY
	}
	fd, err := openHere(dir, name)
	if errors.Is(err, unix.ENOTDIR) {
		return failed(unix.EPERM)
	}
	if err != nil {
		return failed(err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	_ = unix.Fchmod(fd, 0o700) // what still fails is told by the removal
	for {
		// From the start each time: names may be skipped when others go.
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := f.Readdirnames(1024)
		if errors.Is(err, io.EOF) {
			return failed(unix.Unlinkat(dir, name, unix.AT_REMOVEDIR))
		}
		if err != nil {
			return err
		}
		for _, below := range names {
			if err := removeAt(fd, below, path+"/"+below); err != nil {
				return err
			}
		}
	}
}

// openHere opens a directory that is on the same mount as the one it is in: the
// kernel says EXDEV where another begins, and ENOSYS if it can't tell.
func openHere(dir int, name string) (int, error) {
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(dir, name, how)
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	how.Flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if fd, err = unix.Openat2(dir, name, how); err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	if err := os.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700); err != nil {
		return -1, unix.EACCES
	}
	how.Flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	return unix.Openat2(dir, name, how)
}
