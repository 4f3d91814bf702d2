package cell

import (
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the init tells of a file that it holds for the caller, in the form of each call.

// bytesOf is how the kernel writes a value.
func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

func (w *caller) tellStat(fd int, to uint64, flags int) error {
	if flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_EMPTY_PATH) != 0 {
		return unix.EINVAL
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	return w.write(to, bytesOf(&st))
}

func (w *caller) tellStatx(fd int, to uint64, flags, mask int) error {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", flags&^unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH, mask, &st); err != nil {
		return err
	}
	return w.write(to, bytesOf(&st))
}

// tellAccess answers as this thread, whose rights over files are the caller's.
func (w *caller) tellAccess(fd int, mode uint32, flags int) error {
	if flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EACCESS|unix.AT_EMPTY_PATH) != 0 {
		return unix.EINVAL
	}
	empty := [1]byte{}
	_, _, errno := unix.Syscall6(unix.SYS_FACCESSAT2, uintptr(fd), uintptr(unsafe.Pointer(&empty)), uintptr(mode), unix.AT_EMPTY_PATH|unix.AT_EACCESS, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (w *caller) tellLink(fd int, to uint64, size int) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	if size <= 0 || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return 0, unix.EINVAL
	}
	where, err := whereIs(fd)
	if err != nil {
		return 0, err
	}
	target, err := w.linkAt(fd, where)
	if err != nil {
		return 0, err
	}
	target = target[:min(len(target), size)]
	return len(target), w.write(to, []byte(target))
}

// tellWhere tells where the caller is.
func (w *caller) tellWhere(to, size uint64) (int, error) {
	fd, err := w.directory(unix.AT_FDCWD)
	if err != nil {
		return 0, err
	}
	if fd, err = w.b.shown(fd); err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	where, err := whereIs(fd)
	switch {
	case err != nil:
		return 0, err
	case st.Nlink == 0: // it was removed
		return 0, unix.ENOENT
	case uint64(len(where)) >= min(size, math.MaxInt32):
		return 0, unix.ERANGE
	}
	return len(where) + 1, w.write(to, append([]byte(where), 0))
}

// give opens a file for the caller that wants no more than to name it. A
// descriptor that can do no more can't be handed on, so it gets one to read, and
// none of what it may not read or what is there by itself alone: directories on
// the way, links, devices.
func (w *caller) give(fd, flags int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	where, err := whereIs(fd)
	if err != nil {
		return err
	}
	kind := st.Mode & unix.S_IFMT
	switch {
	case flags&unix.O_DIRECTORY != 0 && kind != unix.S_IFDIR:
		return unix.ENOTDIR
	case kind == unix.S_IFLNK:
		return unix.ELOOP
	case kind != unix.S_IFDIR && kind != unix.S_IFREG || where[0] != '/' || w.b.sight.of(where) != entire:
		return unix.EACCES
	}
	file, err := unix.Open(ownFile(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	w.b.lend(w.call, file, flags&unix.O_CLOEXEC)
	return errGiven
}

// watch adds a file to those that a descriptor of the caller's watches. Of a
// directory on the way it would tell what else is there.
func (w *caller) watch(by, fd int, mask uint32) (int, error) {
	where, err := whereIs(fd)
	if err != nil {
		return 0, err
	}
	if where[0] == '/' && w.b.sees(where) == onTheWay {
		return 0, unix.EACCES
	}
	process, err := unix.PidfdOpen(processOf(int(w.thread)), 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(process)
	if err := w.there(); err != nil {
		return 0, err
	}
	list, err := unix.PidfdGetfd(process, by, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(list)
	return unix.InotifyAddWatch(list, ownFile(fd), mask&^unix.IN_DONT_FOLLOW)
}
