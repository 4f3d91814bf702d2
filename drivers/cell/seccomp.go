package cell

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls that no walled run needs, beside the deeds: programs try them every day
// and go on without, or such as nobody has for long.
var refused = []uint32{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_KCMP,
	unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
}

// Where nothing else parts a run from the network it makes no sockets. One
// that is a file could be the engine's own door, or a container daemon's.
// Every program asks for one of those to learn names: that is no deed.
var refusedSockets = []uint32{unix.SYS_CONNECT, unix.SYS_BIND}

// Where a run has no IPC name space, what processes share by number or name
// could be another's.
var refusedShares = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// Landlock holds what files hold, not whose they are nor what their modes and times
// are, and no filter sees which file is meant: where it alone holds a run, none is
// changed. By a watch the run would hear the names of files that it can't list.
var refusedChanges = append([]uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT, unix.SYS_FILE_SETATTR,
	unix.SYS_INOTIFY_ADD_WATCH,
}, elderChanges...)

// The same of extended attributes, which files may go without. By a path a run would
// read them as well; of what it has open it may know.
var refusedMarks = []uint32{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR,
	unix.SYS_SETXATTRAT, unix.SYS_GETXATTRAT, unix.SYS_LISTXATTRAT, unix.SYS_REMOVEXATTRAT,
}

// Where neither name spaces nor Landlock keep signals in the run, it sends none but
// to its own group: no filter sees whose a number is.
var refusedSignals = []uint32{
	unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN,
}

// ABIs of Landlock from which on it knows of cutting files, and of signals.
const (
	governsLength = 3
	scopesSignals = 6
)

// Requests that name what is behind a descriptor.
const (
	fsSetAttr  = 0x401c5820 // FS_IOC_FSSETXATTR
	fioSetOwn  = 0x8901     // FIOSETOWN: whom it signals
	siocSetOwn = 0x8902     // SIOCSPGRP
)

// toOthers are calls by which a process changes what another of its user may
// take of the machine, and the argument that says which. 0 is itself.
var toOthers = []struct {
	call, at uint32
	name     string
}{
	{unix.SYS_PRLIMIT64, atFirst, "prlimit64"},
	{unix.SYS_SCHED_SETAFFINITY, atFirst, "sched_setaffinity"},
	{unix.SYS_SCHED_SETSCHEDULER, atFirst, "sched_setscheduler"},
	{unix.SYS_SCHED_SETPARAM, atFirst, "sched_setparam"},
	{unix.SYS_SCHED_SETATTR, atFirst, "sched_setattr"},
	{unix.SYS_SETPRIORITY, atSecond, "setpriority"},
	{unix.SYS_IOPRIO_SET, atSecond, "ioprio_set"},
}

// IOPRIO_WHO_USER of the kernel.
const ioprioUser = 3

// Where seccomp_data holds what a filter looks at. Of an argument only the
// lower half is.
const (
	atNumber = 0
	atArch   = 4
	atFirst  = 16
	atSecond = 24
	atThird  = 32
	atFourth = 40
	atFifth  = 48
)

// kindOfSocket is the part of a socket's type that is no flag.
const kindOfSocket = 0xf

// x32 marks the calls of x86-64's other interface, whose numbers differ.
const x32 = 0x40000000

// newSpaces are the flags by which a process is made in a name space of its
// own. That of time is among what only unshare takes.
const newSpaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// families of sockets that a worker may make.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// program is a filter in the making. A call that no rule refuses is allowed.
type program []unix.SockFilter

func (p *program) add(code uint16, k uint32, yes, no uint8) {
	*p = append(*p, unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no})
}

const (
	load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	atMin = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	bits  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	give  = unix.BPF_RET | unix.BPF_K
)

func refusal(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// refuse answers a call.
func (p *program) refuse(call, answer uint32) {
	p.add(equal, call, 0, 1)
	p.add(give, answer, 0, 0)
}

// refuseBits answers a call when an argument has any of the bits.
func (p *program) refuseBits(answer, call, at, mask uint32) {
	p.add(equal, call, 0, 4)
	p.add(load, at, 0, 0)
	p.add(bits, mask, 0, 1)
	p.add(give, answer, 0, 0)
	p.add(load, atNumber, 0, 0)
}

// refuseValues answers a call when an argument is one of these.
func (p *program) refuseValues(answer, call, at uint32, values ...uint32) {
	p.add(equal, call, 0, uint8(len(values)+4))
	p.add(load, at, 0, 0)
	for i, v := range values {
		p.add(equal, v, uint8(len(values)-i), 0)
	}
	p.add(unix.BPF_JMP|unix.BPF_JA, 1, 0, 0)
	p.add(give, answer, 0, 0)
	p.add(load, atNumber, 0, 0)
}

// refuseOthers answers a call unless an argument is one of these.
func (p *program) refuseOthers(answer, call, at uint32, values ...uint32) {
	p.add(equal, call, 0, uint8(len(values)+3))
	p.add(load, at, 0, 0)
	for i, v := range values {
		p.add(equal, v, uint8(len(values)-i), 0)
	}
	p.add(give, answer, 0, 0)
	p.add(load, atNumber, 0, 0)
}

// refuseMasked answers a call when bits of an argument are these.
func (p *program) refuseMasked(answer, call, at, mask, value uint32) {
	p.add(equal, call, 0, 5)
	p.add(load, at, 0, 0)
	p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, mask, 0, 0)
	p.add(equal, value, 0, 1)
	p.add(give, answer, 0, 0)
	p.add(load, atNumber, 0, 0)
}

// refuseMade answers who makes a file by opening it, when its mode has any of the
// bits. Who makes none may have anything in the mode's place.
func (p *program) refuseMade(answer, call, flags, mode, mask uint32) {
	p.add(equal, call, 0, 6)
	p.add(load, flags, 0, 0)
	p.add(bits, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, 0, 3)
	p.add(load, mode, 0, 0)
	p.add(bits, mask, 0, 1)
	p.add(give, answer, 0, 0)
	p.add(load, atNumber, 0, 0)
}

// refuseRaw answers who makes a raw socket of the internet's families. Those
// of netlink are all raw.
func (p *program) refuseRaw(answer uint32) {
	p.add(equal, unix.SYS_SOCKET, 0, 8)
	p.add(load, atFirst, 0, 0)
	p.add(equal, unix.AF_INET, 1, 0)
	p.add(equal, unix.AF_INET6, 0, 4)
	p.add(load, atSecond, 0, 0)
	p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, kindOfSocket, 0, 0)
	p.add(equal, unix.SOCK_RAW, 0, 1)
	p.add(give, answer, 0, 0)
	p.add(load, atNumber, 0, 0)
}

// bounds are what a filter is made for.
type bounds struct {
	profile Profile
	network bool // it is parted from the machine's network
	spaces  bool // and from its other processes
	abi     int  // of Landlock; 0 is none
	heard   bool // somebody hears of deeds, and answers them
}

// filter is what a run may not ask of the kernel.
func (o bounds) filter() program {
	deed, family := refusal(unix.EPERM), refusal(unix.EAFNOSUPPORT)
	if o.heard {
		deed, family = unix.SECCOMP_RET_USER_NOTIF, unix.SECCOMP_RET_USER_NOTIF
	}
	var p program
	p.add(load, atArch, 0, 0)
	p.add(equal, architecture, 1, 0)
	p.add(give, unix.SECCOMP_RET_KILL_PROCESS, 0, 0)
	p.add(load, atNumber, 0, 0)
	p.add(atMin, x32, 0, 1)
	p.add(give, unix.SECCOMP_RET_KILL_PROCESS, 0, 0)
	for _, call := range refused {
		p.refuse(call, refusal(unix.EPERM))
	}
	for i := range deeds {
		if deeds[i].name == deedLook && o.profile != Reader {
			continue // a worker may look into its own
		}
		for _, n := range deeds[i].calls {
			p.refuse(n.call, deed)
		}
	}
	// Its flags are behind a pointer: programs fall back to clone.
	p.refuse(unix.SYS_CLONE3, refusal(unix.ENOSYS))
	p.refuseSetID(deed)
	p.refuseBits(deed, unix.SYS_UNSHARE, atFirst, newSpaces|unix.CLONE_NEWTIME)
	p.refuseBits(deed, unix.SYS_CLONE, atFirst, newSpaces)
	p.refuseValues(deed, unix.SYS_IOCTL, atSecond, unix.TIOCSTI, unix.TIOCLINUX)
	p.refuseValues(refusal(unix.EPERM), unix.SYS_SETPRIORITY, atFirst, unix.PRIO_USER)
	p.refuseValues(refusal(unix.EPERM), unix.SYS_IOPRIO_SET, atFirst, ioprioUser)
	for _, c := range toOthers {
		if o.spaces {
			p.refuseValues(deed, c.call, c.at, 1) // its init
		} else {
			p.refuseOthers(refusal(unix.EPERM), c.call, c.at, 0)
		}
	}
	if !o.spaces {
		for _, call := range refusedShares {
			p.refuse(call, refusal(unix.EPERM))
		}
		for _, call := range refusedMarks {
			p.refuse(call, refusal(unix.ENOTSUP))
		}
		p.refuseValues(refusal(unix.EPERM), unix.SYS_IOCTL, atSecond, unix.FS_IOC_SETFLAGS, fsSetAttr)
		for _, call := range refusedChanges {
			p.refuse(call, refusal(unix.EPERM))
		}
		for _, kind := range []uint32{unix.SOCK_DGRAM, unix.SOCK_RAW} { // by a pair of these something is sent to any other
			p.refuseMasked(refusal(unix.EPERM), unix.SYS_SOCKETPAIR, atSecond, kindOfSocket, kind)
		}
		for call, at := range opens() {
			p.refuseMasked(refusal(unix.EACCES), call, at, unix.O_ACCMODE, unix.O_ACCMODE) // neither to read nor to write, which Landlock lets pass
			if o.abi < governsLength {                                                     // to open is to cut, also for who may not write
				p.refuseMasked(refusal(unix.EACCES), call, at, unix.O_ACCMODE|unix.O_TRUNC, unix.O_RDONLY|unix.O_TRUNC)
			}
		}
		if o.abi < governsLength {
			p.refuse(unix.SYS_TRUNCATE, refusal(unix.EPERM))
		}
		if o.abi < scopesSignals {
			p.refuseSignals()
		}
	}
	if o.network {
		p.refuseOthers(family, unix.SYS_SOCKET, atFirst, families...)
		p.refuseRaw(deed)
	} else {
		p.refuseValues(refusal(unix.EPERM), unix.SYS_SOCKET, atFirst, unix.AF_UNIX, unix.AF_NETLINK)
		p.refuse(unix.SYS_SOCKET, deed)
		for _, call := range refusedSockets {
			p.refuse(call, refusal(unix.EPERM))
		}
	}
	p.add(give, unix.SECCOMP_RET_ALLOW, 0, 0)
	return p
}

// refuseSignals leaves a run those to its own group, which the init is not of.
func (p *program) refuseSignals() {
	p.refuseOthers(refusal(unix.EPERM), unix.SYS_KILL, atFirst, 0)
	for _, call := range refusedSignals {
		p.refuse(call, refusal(unix.EPERM))
	}
	p.refuseValues(refusal(unix.EPERM), unix.SYS_FCNTL, atSecond, unix.F_SETOWN, unix.F_SETOWN_EX)
	p.refuseValues(refusal(unix.EPERM), unix.SYS_IOCTL, atSecond, fioSetOwn, siocSetOwn)
	p.refuseValues(refusal(unix.EPERM), unix.SYS_SETPGID, atSecond, uint32(os.Getpid()))
}

// narrow refuses those calls of the kernel to this thread, for good. Calls of
// another architecture end the process. It returns the descriptor at which the
// calls arrive that somebody is to answer; -1 where deeds are refused unheard,
// because the system gives no such descriptor, or another program has one.
func (o bounds) narrow() (asked int, err error) {
	o.heard = true
	if asked, err = o.install(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER); err == nil {
		return asked, nil
	}
	o.heard = false
	_, err = o.install(0)
	return -1, err
}

func (o bounds) install(flags uintptr) (int, error) {
	p := o.filter()
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, fmt.Errorf("refuse calls of the kernel: %w", errno)
	}
	return int(fd), nil
}
