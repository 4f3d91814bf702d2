package cell

import (
	"errors"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// Landlock holds what files hold, not that they are there: how large one is, when
// it changed, where a link leads and what becomes of a directory, the kernel tells
// everybody. Where Landlock alone holds a run, its init answers such calls. It
// finds the file itself and asks the kernel itself, so that what the caller has in
// its memory meanwhile does not matter.

// ask is what a call asks of a file, and which of its arguments say of which.
type ask struct {
	what  int
	dir   int // argument: a descriptor where a path begins; none is where the caller is
	path  int // argument
	more  int // argument: a mode, a mask, a size or flags, as the call has it
	to    int // argument: where the answer is written
	flags int // argument; or none
	same  bool
}

const none = -1

const (
	askStat = iota + 1
	askStatx
	askAccess
	askLink
	askSystem // of files
	askOpen   // by its path alone
	askEnter
	askWhere // it is
	askWatch
)

// asks are the calls that are answered, by number.
func asks() map[uint32]ask {
	all := map[uint32]ask{
		unix.SYS_NEWFSTATAT:        {what: askStat, dir: 0, path: 1, to: 2, flags: 3},
		unix.SYS_STATX:             {what: askStatx, dir: 0, path: 1, flags: 2, more: 3, to: 4},
		unix.SYS_FACCESSAT:         {what: askAccess, dir: 0, path: 1, more: 2, flags: none},
		unix.SYS_FACCESSAT2:        {what: askAccess, dir: 0, path: 1, more: 2, flags: 3},
		unix.SYS_READLINKAT:        {what: askLink, dir: 0, path: 1, to: 2, more: 3, flags: none, same: true},
		unix.SYS_OPENAT:            {what: askOpen, dir: 0, path: 1, more: 2, flags: none},
		unix.SYS_STATFS:            {what: askSystem, dir: none, path: 0, to: 1, flags: none},
		unix.SYS_CHDIR:             {what: askEnter, dir: none, path: 0, flags: none},
		unix.SYS_GETCWD:            {what: askWhere, to: 0, more: 1},
		unix.SYS_INOTIFY_ADD_WATCH: {what: askWatch, dir: none, path: 1, more: 2, flags: none},
	}
	maps.Copy(all, elderAsks())
	return all
}

// Calls that ask the same and have elder forms, or that ask what files may go
// without.
var refusedAsks = []uint32{unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FILE_GETATTR, unix.SYS_LISTNS}

// judgeAsks has the init answer them. To open a file neither to read nor to write
// is refused: Landlock has no word for that, and lets it pass.
func (p *program) judgeAsks() {
	open := opens()
	for _, call := range slices.Sorted(maps.Keys(asks())) {
		if at, is := open[call]; is {
			p.refuseBits(unix.SECCOMP_RET_USER_NOTIF, call, at, unix.O_PATH)
			p.refuseMasked(refusal(unix.EACCES), call, at, unix.O_ACCMODE, unix.O_ACCMODE)
		} else {
			p.refuse(call, unix.SECCOMP_RET_USER_NOTIF)
		}
	}
	for _, call := range slices.Concat(refusedAsks, refusedElderAsks) {
		p.refuse(call, refusal(unix.ENOSYS))
	}
	// Who can't be looked into gets no answers.
	p.refuseValues(refusal(unix.EPERM), unix.SYS_PRCTL, atFirst, unix.PR_SET_DUMPABLE)
}

// tell answers a call.
func (b *broker) tell(c *call, a ask) {
	w, err := b.caller(c)
	if err != nil {
		b.deny(c, errnoOf(err))
		return
	}
	defer w.close()
	value, err := w.told(a)
	switch {
	case errors.Is(err, errGoOn):
		b.answer(answer{id: c.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
	case errors.Is(err, errGiven):
	case err != nil:
		b.deny(c, errnoOf(err))
	default:
		b.answer(answer{id: c.id, value: int64(value)})
	}
}

var (
	errGoOn  = errors.New("the kernel may go on with the call")
	errGiven = errors.New("the caller has its answer")
)

// told is what the caller is told, with the value of its call.
func (w *caller) told(a ask) (value int, err error) {
	if a.what == askWhere {
		return w.tellWhere(w.args[a.to], w.args[a.more])
	}
	flags, more := 0, int(int32(w.args[a.more]))
	if a.flags != none {
		flags = int(int32(w.args[a.flags]))
	}
	follow := !a.same && flags&unix.AT_SYMLINK_NOFOLLOW == 0
	switch a.what {
	case askOpen:
		follow = more&unix.O_NOFOLLOW == 0
	case askWatch:
		follow = more&unix.IN_DONT_FOLLOW == 0
	}
	fd, err := w.meant(a, flags, follow)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	switch a.what {
	case askStat:
		return 0, w.tellStat(fd, w.args[a.to], flags)
	case askStatx:
		return 0, w.tellStatx(fd, w.args[a.to], flags, int(uint32(more)))
	case askAccess:
		return 0, w.tellAccess(fd, uint32(more), flags)
	case askLink:
		return w.tellLink(fd, w.args[a.to], more)
	case askSystem:
		var st unix.Statfs_t
		if err := unix.Fstatfs(fd, &st); err != nil {
			return 0, err
		}
		return 0, w.write(w.args[a.to], bytesOf(&st))
	case askOpen:
		return 0, w.give(fd, more)
	case askWatch:
		return w.watch(int(int32(w.args[0])), fd, uint32(more))
	}
	// To be somewhere tells nothing: whatever is asked there is answered here.
	return 0, errGoOn
}

// meant opens the file that a call is about.
func (w *caller) meant(a ask, flags int, follow bool) (int, error) {
	from := int32(unix.AT_FDCWD)
	if a.dir != none {
		from = int32(w.args[a.dir])
	}
	path, err := "", error(nil)
	if at := w.args[a.path]; at != 0 || flags&unix.AT_EMPTY_PATH == 0 {
		if path, err = w.path(at); err != nil {
			return -1, err
		}
	}
	if path != "" {
		return w.find(from, path, follow)
	}
	if flags&unix.AT_EMPTY_PATH == 0 && w.number != unix.SYS_READLINKAT {
		return -1, unix.ENOENT
	}
	fd, err := w.directory(from)
	if err == nil && from == unix.AT_FDCWD {
		return w.b.shown(fd)
	}
	return fd, err
}
