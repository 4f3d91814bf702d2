package cell

import (
	"bytes"
	"errors"
	"math"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// caller is who waits for the answer to a call, with its memory held: a number
// may become another's, the memory does not.
type caller struct {
	*call
	b   *broker
	mem int
}

// caller holds the memory of who made a call.
func (b *broker) caller(c *call) (*caller, error) {
	mem, err := unix.Open(procOf(c.thread, "mem"), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, unix.EPERM // it does not let itself be looked into
	}
	w := &caller{call: c, b: b, mem: mem}
	if err := w.there(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *caller) close() { _ = unix.Close(w.mem) }

// there reports an error unless it still waits: then what was opened by its
// number until now is its own.
func (w *caller) there() error {
	return w.b.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&w.id))
}

// path reads one, of at most PATH_MAX bytes with its end.
func (w *caller) path(at uint64) (string, error) {
	if at > math.MaxInt64-unix.PathMax {
		return "", unix.EFAULT
	}
	var few [256]byte
	all := few[:]
	for n := 0; ; all = append(all, make([]byte, unix.PathMax-len(all))...) {
		got, err := unix.Pread(w.mem, all[n:], int64(at)+int64(n))
		if err != nil || got <= 0 {
			return "", unix.EFAULT
		}
		if i := bytes.IndexByte(all[n:n+got], 0); i >= 0 {
			return string(all[:n+i]), nil
		}
		if n += got; n == unix.PathMax {
			return "", unix.ENAMETOOLONG
		} else if n < len(all) {
			return "", unix.EFAULT
		}
	}
}

// read fills to from its memory.
func (w *caller) read(at uint64, to []byte) error {
	if at > math.MaxInt64-uint64(len(to)) {
		return unix.EFAULT
	}
	if n, err := unix.Pread(w.mem, to, int64(at)); err != nil || n < len(to) {
		return unix.EFAULT
	}
	return nil
}

// write gives it an answer.
func (w *caller) write(at uint64, answer []byte) error {
	if err := w.there(); err != nil {
		return err
	}
	if at > math.MaxInt64-uint64(len(answer)) {
		return unix.EFAULT
	}
	if n, err := unix.Pwrite(w.mem, answer, int64(at)); err != nil || n < len(answer) {
		return unix.EFAULT
	}
	return nil
}

// open opens a link of its directory in /proc.
func (w *caller) open(name string) (int, error) {
	fd, err := unix.Open(procOf(w.thread, name), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := w.there(); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// directory opens what a call's paths begin at: a descriptor of the caller's or
// where it is.
func (w *caller) directory(fd int32) (int, error) {
	if fd == unix.AT_FDCWD {
		return w.open("cwd")
	}
	at, err := w.open("fd/" + strconv.Itoa(int(fd)))
	if errors.Is(err, os.ErrNotExist) && w.there() == nil {
		err = unix.EBADF
	}
	return at, err
}

func procOf(thread uint32, name string) string {
	return "/proc/" + strconv.Itoa(int(thread)) + "/" + name
}

// ownFile is a path to a file that this process has open.
func ownFile(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// whereIs is the path of a file that this process has open. What has none, a
// pipe say, has a name that does not begin with "/".
func whereIs(fd int) (string, error) { return os.Readlink(ownFile(fd)) }
