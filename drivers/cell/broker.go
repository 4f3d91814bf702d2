package cell

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock governs what files hold, not whose they are, what their modes and
// times are. Where it alone holds a run, its init judges such calls: it finds
// the file itself, and makes the change itself if the file is the run's to
// write. What the caller has in its memory meanwhile does not matter.

// Calls that have newer forms, and such as are about extended attributes, which
// the run's own files may go without.
var refusedMarks = append([]uint32{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, // by a path; of what it has open a run may know
	unix.SYS_SETXATTRAT, unix.SYS_GETXATTRAT, unix.SYS_LISTXATTRAT, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
}, refusedElders...)

const fsSetAttr = 0x401c5820 // FS_IOC_FSSETXATTR

// change is what a call changes, and which of its arguments say what.
type change struct {
	what  int
	fd    bool // the first argument is the file
	path  int  // argument; -1 is none; where it is the second, the first is a directory
	value int
	flags int  // argument; 0 is none
	same  bool // a symbolic link is meant itself
}

const (
	setMode = iota + 1
	setOwner
	setLength
	setTimes   // two timespecs
	setSeconds // two numbers
	setMicros  // two timevals
)

// governsLength is the first ABI of Landlock that knows of cutting files.
const governsLength = 3

// changes are the calls that are judged, by number, beside an ABI of Landlock.
func changes(abi int) map[uint32]change {
	all := map[uint32]change{
		unix.SYS_FCHMOD:    {what: setMode, fd: true, path: -1, value: 1},
		unix.SYS_FCHMODAT:  {what: setMode, path: 1, value: 2},
		unix.SYS_FCHMODAT2: {what: setMode, path: 1, value: 2, flags: 3},
		unix.SYS_FCHOWN:    {what: setOwner, fd: true, path: -1, value: 1},
		unix.SYS_FCHOWNAT:  {what: setOwner, path: 1, value: 2, flags: 4},
		unix.SYS_UTIMENSAT: {what: setTimes, path: 1, value: 2, flags: 3},
	}
	maps.Copy(all, elder())
	if abi < governsLength {
		all[unix.SYS_TRUNCATE] = change{what: setLength, path: 0, value: 1}
	}
	return all
}

// judged are their numbers.
func judged(abi int) []uint32 { return slices.Sorted(maps.Keys(changes(abi))) }

// broker answers what a run asks of the kernel past its bounds: it tells of
// files, judges and makes changes, judges whom a process reaches, and refuses
// deeds.
type broker struct {
	asked  int // where calls arrive
	bounds bounds
	write  []string // what the run may write, without symbolic links
	sight  sight    // what is there for it
	user   User     // whom it runs as
	calls  map[uint32]change
	asks   map[uint32]ask
	to     map[uint32]naming
	pool   pool

	mu    sync.Mutex      // of what follows
	kin   family          // the run
	heard map[string]bool // deeds that the engine was told of
	deeds int             // that were refused
}

func newBroker(bounds bounds, o *order) *broker {
	b := &broker{bounds: bounds, user: User{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}}
	b.kin, b.heard = family{of: os.Getpid(), known: map[int]uint64{}}, map[string]bool{}
	if o.User != nil {
		b.user = *o.User
	}
	if bounds.spaces {
		return b
	}
	b.calls, b.asks, b.sight = changes(bounds.abi), asks(), newSight(slices.Concat(o.Read, o.Write), o.Names)
	if bounds.signals() {
		b.to = reaches()
	}
	for _, path := range o.Write {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			b.write = append(b.write, real)
		}
	}
	return b
}

// call is a call that waits for its answer, as the kernel tells it.
type call struct {
	id     uint64
	thread uint32
	_      uint32
	number uint32
	_      uint32
	_      uint64
	args   [6]uint64
}

type answer struct {
	id    uint64
	value int64
	error int32
	flags uint32
}

func (b *broker) ioctl(request uintptr, data unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(b.asked), request, uintptr(data)); errno != 0 {
		return errno
	}
	return nil
}

// take waits for one call and answers it; false says that there are no more.
func (b *broker) take() bool {
	c := new(call)
	err := b.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(c))
	switch {
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT): // who asked has gone
		return true
	case err != nil:
		return false
	}
	defer b.pool.work(b)()
	if deed, _ := c.leaves(); deed != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.deny(c, b.refuse(c))
	} else if a, is := b.asks[c.number]; is {
		b.tell(c, a)
	} else if ch, is := b.calls[c.number]; is {
		b.deny(c, errnoOf(b.judge(c, ch)))
	} else if r, is := b.to[c.number]; is {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reach(c, r)
	} else {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.deny(c, b.refuse(c))
	}
	return true
}

// answer reports whether the caller was still there to hear it.
func (b *broker) answer(a answer) bool {
	return b.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a)) == nil
}

// deny answers with an error; 0 is none.
func (b *broker) deny(c *call, errno unix.Errno) bool {
	return b.answer(answer{id: c.id, error: -int32(errno)})
}

// errnoOf is the kernel's of an error; 0 for none.
func errnoOf(err error) unix.Errno {
	if err == nil {
		return 0
	}
	errno := unix.EPERM
	_ = errors.As(err, &errno)
	return errno
}

// judge makes the change, or says why not.
func (b *broker) judge(c *call, ch change) error {
	w, err := b.caller(c)
	if err != nil {
		return err
	}
	defer w.close()
	value, err := w.value(ch)
	if err != nil {
		return err
	}
	fd, err := w.file(ch)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := w.there(); err != nil {
		return err
	}
	self := ownFile(fd)
	name, err := whereIs(fd)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Uid != b.user.UID || !slices.ContainsFunc(b.write, func(dir string) bool { return within(name, dir) }) {
		return unix.EPERM
	}
	switch ch.what {
	case setMode:
		return unix.Chmod(self, uint32(c.args[ch.value])&0o7777)
	case setOwner: // only to what it is
		uid, gid := uint32(c.args[ch.value]), uint32(c.args[ch.value+1])
		if uid != math.MaxUint32 && uid != st.Uid || gid != math.MaxUint32 && gid != st.Gid {
			return unix.EPERM
		}
		return nil
	case setLength:
		return unix.Truncate(self, int64(c.args[ch.value]))
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, self, value, 0)
}

// value is the times that a call names, nil for those of now.
func (w *caller) value(ch change) ([]unix.Timespec, error) {
	at := w.args[ch.value]
	if at == 0 || ch.what < setTimes {
		return nil, nil
	}
	var n [4]int64
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&n)), unsafe.Sizeof(n))
	if ch.what == setSeconds {
		raw = raw[:16]
	}
	if err := w.read(at, raw); err != nil {
		return nil, err
	}
	switch ch.what {
	case setSeconds:
		return []unix.Timespec{{Sec: n[0]}, {Sec: n[1]}}, nil
	case setMicros:
		return []unix.Timespec{{Sec: n[0], Nsec: n[1] * 1000}, {Sec: n[2], Nsec: n[3] * 1000}}, nil
	}
	return []unix.Timespec{{Sec: n[0], Nsec: n[1]}, {Sec: n[2], Nsec: n[3]}}, nil
}

// file finds what a call is about.
func (w *caller) file(ch change) (int, error) {
	from, flags := int32(unix.AT_FDCWD), 0
	if ch.fd || ch.path == 1 {
		from = int32(w.args[0])
	}
	if ch.flags > 0 {
		flags = int(int32(w.args[ch.flags]))
	}
	if ch.path < 0 || w.args[ch.path] == 0 {
		return w.directory(from)
	}
	path, err := w.path(w.args[ch.path])
	switch {
	case err != nil:
		return -1, err
	case path == "" && flags&unix.AT_EMPTY_PATH != 0:
		return w.directory(from)
	}
	return w.find(from, path, !ch.same && flags&unix.AT_SYMLINK_NOFOLLOW == 0)
}
