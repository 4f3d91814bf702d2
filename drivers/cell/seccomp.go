package cell

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls that no walled run needs: of mounts and name spaces, of the kernel's
// keys, of the machine as a whole, and such as have had many holes.
var refused = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
	unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SYSLOG, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_FANOTIFY_INIT,
	unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL, unix.SYS_VHANGUP, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES, unix.SYS_KCMP,
}

// A reader does not look into other processes either.
var refusedToReaders = []uint32{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD}

// Where nothing else parts a run from the network it makes no sockets. One
// that is a file could be the engine's own door, or a container daemon's.
var refusedSockets = []uint32{unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND}

// Where a run has no IPC name space, what processes share by number or name
// could be another's.
var refusedShares = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// toOthers are calls by which a process changes what another of its user may
// take of the machine, and the argument that says which. 0 is itself.
var toOthers = []struct{ call, at uint32 }{
	{unix.SYS_PRLIMIT64, atFirst},
	{unix.SYS_SCHED_SETAFFINITY, atFirst},
	{unix.SYS_SCHED_SETSCHEDULER, atFirst},
	{unix.SYS_SCHED_SETPARAM, atFirst},
	{unix.SYS_SCHED_SETATTR, atFirst},
	{unix.SYS_SETPRIORITY, atSecond},
	{unix.SYS_IOPRIO_SET, atSecond},
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
)

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

// refuse answers a call with an error.
func (p *program) refuse(call uint32, e unix.Errno) {
	p.add(equal, call, 0, 1)
	p.add(give, refusal(e), 0, 0)
}

// refuseBits answers a call with an error when an argument has any of the bits.
func (p *program) refuseBits(call, at, mask uint32) {
	p.add(equal, call, 0, 4)
	p.add(load, at, 0, 0)
	p.add(bits, mask, 0, 1)
	p.add(give, refusal(unix.EPERM), 0, 0)
	p.add(load, atNumber, 0, 0)
}

// refuseValues answers a call with an error when an argument is one of these.
func (p *program) refuseValues(call, at uint32, values ...uint32) {
	p.add(equal, call, 0, uint8(len(values)+4))
	p.add(load, at, 0, 0)
	for i, v := range values {
		p.add(equal, v, uint8(len(values)-i), 0)
	}
	p.add(unix.BPF_JMP|unix.BPF_JA, 1, 0, 0)
	p.add(give, refusal(unix.EPERM), 0, 0)
	p.add(load, atNumber, 0, 0)
}

// refuseOthers answers a call with an error unless an argument is one of these.
func (p *program) refuseOthers(e unix.Errno, call, at uint32, values ...uint32) {
	p.add(equal, call, 0, uint8(len(values)+3))
	p.add(load, at, 0, 0)
	for i, v := range values {
		p.add(equal, v, uint8(len(values)-i), 0)
	}
	p.add(give, refusal(e), 0, 0)
	p.add(load, atNumber, 0, 0)
}

// filter is what a profile may not ask of the kernel. Network says that the
// run is parted from the machine's network, spaces that it is from the
// machine's other processes.
func filter(profile Profile, network, spaces bool) program {
	var p program
	p.add(load, atArch, 0, 0)
	p.add(equal, architecture, 1, 0)
	p.add(give, unix.SECCOMP_RET_KILL_PROCESS, 0, 0)
	p.add(load, atNumber, 0, 0)
	p.add(atMin, x32, 0, 1)
	p.add(give, unix.SECCOMP_RET_KILL_PROCESS, 0, 0)
	for _, call := range refused {
		p.refuse(call, unix.EPERM)
	}
	if profile == Reader {
		for _, call := range refusedToReaders {
			p.refuse(call, unix.EPERM)
		}
	}
	// Its flags are behind a pointer: programs fall back to clone.
	p.refuse(unix.SYS_CLONE3, unix.ENOSYS)
	p.refuseBits(unix.SYS_UNSHARE, atFirst, newSpaces|unix.CLONE_NEWTIME)
	p.refuseBits(unix.SYS_CLONE, atFirst, newSpaces)
	p.refuseValues(unix.SYS_IOCTL, atSecond, unix.TIOCSTI, unix.TIOCLINUX)
	p.refuseValues(unix.SYS_SETPRIORITY, atFirst, unix.PRIO_USER)
	p.refuseValues(unix.SYS_IOPRIO_SET, atFirst, ioprioUser)
	for _, c := range toOthers {
		if spaces {
			p.refuseValues(c.call, c.at, 1) // its init
		} else {
			p.refuseOthers(unix.EPERM, c.call, c.at, 0)
		}
	}
	if !spaces {
		for _, call := range refusedShares {
			p.refuse(call, unix.EPERM)
		}
		for _, call := range refusedMarks {
			p.refuse(call, unix.ENOTSUP)
		}
		p.refuseValues(unix.SYS_IOCTL, atSecond, unix.FS_IOC_SETFLAGS, fsSetAttr)
		for _, call := range judged() {
			p.add(equal, call, 0, 1)
			p.add(give, unix.SECCOMP_RET_USER_NOTIF, 0, 0)
		}
	}
	if network {
		p.refuseOthers(unix.EAFNOSUPPORT, unix.SYS_SOCKET, atFirst, families...)
	} else {
		for _, call := range refusedSockets {
			p.refuse(call, unix.EPERM)
		}
	}
	p.add(give, unix.SECCOMP_RET_ALLOW, 0, 0)
	return p
}

// narrow refuses those calls of the kernel to this thread, for good. Calls of
// another architecture end the process. Without name spaces it returns the
// descriptor at which the calls arrive that a broker is to judge, else -1.
func narrow(profile Profile, network, spaces bool) (asked int, err error) {
	p := filter(profile, network, spaces)
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	flags := uintptr(0)
	if !spaces {
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, fmt.Errorf("refuse calls of the kernel: %w", errno)
	}
	if spaces {
		return -1, nil
	}
	return int(fd), nil
}
