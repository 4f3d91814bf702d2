package safeopen

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// atPath opens a directory as a place to go on from, which asks for no more than
// leave to pass through it.
const atPath = unix.O_PATH

// renameNew renames a file of a directory unless the other name is taken.
func renameNew(dir int, from, to string) error {
	return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
}

// unnamed opens a new file of a directory that has no name yet (open(2), O_TMPFILE),
// where it can be given one.
func unnamed(dir int) (fd int, err error) {
	if err := unix.Access("/proc/self/fd", unix.X_OK); err != nil {
		return -1, err
	}
	return unix.Openat(dir, ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, newFile)
}

// called gives it a name, which must be free.
func called(fd, dir int, name string) error {
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), dir, name, unix.AT_SYMLINK_FOLLOW)
}
