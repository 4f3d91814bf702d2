package exec

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// startCall is one process to start, on the supervisor's own thread.
type startCall struct {
	path    string
	argv    []string
	attr    *os.ProcAttr
	prepare func(pid int) error
	out     chan<- startReply
}

type startReply struct {
	p   *os.Process
	err error
}

// start holds the new program at its first instruction, by tracing it for
// that moment, so that its limits and its run's tag are in force before it can
// fork.
func (c startCall) start() startReply {
	hold := !changesUser(c.path)
	p, err := c.launch(hold)
	if hold && errors.Is(err, unix.EPERM) { // tracing is forbidden here
		hold = false
		p, err = c.launch(false)
	}
	if err != nil {
		return startReply{nil, err}
	}
	held := hold && awaitTrap(p.Pid)
	err = c.prepare(p.Pid)
	if held {
		// ESRCH: somebody killed it meanwhile, which its owner will notice.
		_ = unix.PtraceDetach(p.Pid)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		_ = p.Kill()
		_, _ = p.Wait()
		return startReply{nil, err}
	}
	return startReply{p, nil}
}

func (c startCall) launch(hold bool) (*os.Process, error) {
	c.attr.Sys.Ptrace = hold
	return os.StartProcess(c.path, c.argv, c.attr)
}

// attributes of every process that is started.
func (u *User) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if u != nil {
		attr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: []uint32{}}
	}
	return attr
}

// changesUser reports whether a program runs as another user than ours, which
// a traced one may not.
func changesUser(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0
}

// awaitTrap waits until a traced program has reached its first instruction;
// false when it has ended before. It does not reap.
func awaitTrap(pid int) bool {
	const trapped = 4 // CLD_TRAPPED
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && info.Code == trapped
		}
	}
}
