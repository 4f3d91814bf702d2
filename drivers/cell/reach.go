package cell

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where a run has no name space of processes, and Landlock does not know of
// signals yet, its init judges the calls by which one process reaches another:
// only those that descend from the init are the run's. A caller may go on with
// what is about itself. The rest the init does in its stead, after it has
// answered, so that it is done once: before a caller goes on it can wait until
// the number is another's. No descriptor of a foreign process comes to a run
// otherwise, so calls that take one are not judged.

// scopesSignals is the first ABI of Landlock that keeps signals in the run.
const scopesSignals = 6

// naming is a call that names a process by its number.
type naming struct {
	name   string
	at     int // the argument that does
	signal int // argument; 0 is none
}

// reaches are those that are judged, by number.
func reaches() map[uint32]naming {
	return map[uint32]naming{
		unix.SYS_KILL:              {name: "kill", signal: 1},
		unix.SYS_TKILL:             {name: "tkill", signal: 1},
		unix.SYS_TGKILL:            {name: "tgkill", signal: 2},
		unix.SYS_RT_SIGQUEUEINFO:   {name: "rt_sigqueueinfo", signal: 1},
		unix.SYS_RT_TGSIGQUEUEINFO: {name: "rt_tgsigqueueinfo", signal: 2},
		unix.SYS_PIDFD_OPEN:        {name: "pidfd_open"},
		unix.SYS_FCNTL:             {name: "fcntl", at: 2}, // F_SETOWN
	}
}

// Requests that set whom a descriptor signals, and name it in memory.
const (
	fioSetOwn  = 0x8901 // FIOSETOWN
	siocSetOwn = 0x8902 // SIOCSPGRP
)

// signals reports whether they need to be judged.
func (o bounds) signals() bool { return !o.spaces && o.abi < scopesSignals }

// judgeSignals has the init judge them. None of the run enters the group of the
// init, so each may signal its own.
func (p *program) judgeSignals() {
	for call := range reaches() {
		if call != unix.SYS_FCNTL {
			p.refuse(call, unix.SECCOMP_RET_USER_NOTIF)
		}
	}
	p.refuseValues(unix.SECCOMP_RET_USER_NOTIF, unix.SYS_FCNTL, atSecond, unix.F_SETOWN)
	p.refuseValues(refusal(unix.EPERM), unix.SYS_FCNTL, atSecond, unix.F_SETOWN_EX)
	p.refuseValues(refusal(unix.EPERM), unix.SYS_IOCTL, atSecond, fioSetOwn, siocSetOwn)
	p.refuseValues(refusal(unix.EPERM), unix.SYS_SETPGID, atSecond, uint32(os.Getpid()))
}

const maxSignal = 64

// reach answers a call that names a process, and makes it if it may.
func (b *broker) reach(c *call, r naming) {
	n, sig := int(int32(c.args[r.at])), unix.Signal(0)
	if r.signal > 0 {
		sig = unix.Signal(int32(c.args[r.signal]))
	}
	asks := r.signal > 0 && sig == 0 // whether somebody is there, which is no deed
	switch {
	case n == 0 || n == int(c.thread) || n > 0 && n == processOf(int(c.thread)): // the caller's group, or itself
		b.answer(answer{id: c.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
	case sig < 0 || sig > maxSignal, n < 0 && c.number != unix.SYS_KILL:
		b.deny(c, unix.EINVAL)
	case n < 0:
		b.reachGroup(c, -n, sig, asks)
	default:
		b.reachProcess(c, n, sig, asks)
	}
}

// reachProcess makes a call about a process that is not the caller.
func (b *broker) reachProcess(c *call, n int, sig unix.Signal, asks bool) {
	process, flags := n, 0
	if c.number == unix.SYS_PIDFD_OPEN {
		flags = int(int32(c.args[1]))
	} else if process = processOf(n); process == 0 {
		b.deny(c, unix.ESRCH)
		return
	}
	fd, err := unix.PidfdOpen(process, flags)
	if err != nil {
		b.deny(c, errnoOf(err))
		return
	}
	defer unix.Close(fd)
	// What has the number from here on is the one of the descriptor, or that has ended.
	p, owned := b.kin.find(process)
	switch {
	case p.PID == 0:
		b.deny(c, unix.ESRCH)
	case !owned:
		b.foreign(c, asks)
	case c.number == unix.SYS_PIDFD_OPEN:
		b.lend(c, fd, unix.O_CLOEXEC)
	case c.number == unix.SYS_TKILL:
		b.signalThread(c, process, n, sig)
	case c.number == unix.SYS_TGKILL:
		b.signalThread(c, n, int(int32(c.args[1])), sig)
	case c.number == unix.SYS_KILL:
		b.signal(c, fd, sig, nil)
	case c.number == unix.SYS_RT_SIGQUEUEINFO:
		info := new(unix.Siginfo)
		w, err := b.caller(c)
		if err == nil {
			err = w.read(c.args[2], bytesOf(info))
			w.close()
		}
		if err != nil {
			b.deny(c, errnoOf(err))
			return
		}
		info.Signo = int32(sig)
		b.signal(c, fd, sig, info)
	default: // nobody needs it
		b.deny(c, unix.EPERM)
	}
}

// siTkill says that a signal came from tkill: only the kernel may say so, as
// all that is not negative.
const siTkill = -6

func (b *broker) signal(c *call, fd int, sig unix.Signal, info *unix.Siginfo) {
	if info != nil && (info.Code >= 0 || info.Code == siTkill) {
		b.deny(c, unix.EPERM)
	} else if b.deny(c, 0) && sig != 0 {
		_ = unix.PidfdSendSignal(fd, sig, info, 0)
	}
}

func (b *broker) signalThread(c *call, process, thread int, sig unix.Signal) {
	if err := unix.Tgkill(process, thread, 0); err != nil {
		b.deny(c, errnoOf(err))
	} else if b.deny(c, 0) && sig != 0 {
		_ = unix.Tgkill(process, thread, sig)
	}
}

// lend gives the caller a descriptor, as what it called for.
func (b *broker) lend(c *call, fd, flags int) {
	add := struct {
		id                     uint64
		flags, from, to, after uint32
	}{id: c.id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, from: uint32(fd), after: uint32(flags)}
	if err := b.ioctl(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&add)); err != nil {
		b.deny(c, errnoOf(err))
	}
}

// maxPasses is how often members of a group are looked for, which may grow
// meanwhile.
const maxPasses = 8

func (b *broker) reachGroup(c *call, n int, sig unix.Signal, asks bool) {
	sent := map[proc]bool{}
	for range maxPasses {
		was := len(sent)
		for _, p := range descendants(b.kin.of) {
			if one := p.name(); p.Group == n && !sent[one] {
				if len(sent) == 0 && !b.deny(c, 0) {
					return
				}
				sent[one] = true
				if sig != 0 {
					p.send(sig)
				}
			}
		}
		if len(sent) == was {
			break
		}
	}
	switch {
	case len(sent) > 0:
	case n > 1 && errors.Is(unix.Kill(-n, 0), unix.ESRCH):
		b.deny(c, unix.ESRCH)
	default:
		b.foreign(c, asks)
	}
}

// foreign answers who reaches for what is not the run's.
func (b *broker) foreign(c *call, asks bool) {
	if asks {
		b.tire()
		b.deny(c, unix.EPERM)
	} else {
		b.deny(c, b.refuse(c))
	}
}
