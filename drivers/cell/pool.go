package cell

import (
	"os"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Bounds of the threads that answer calls. More than a few are made only while
// all wait for the kernel, over a file system that does not answer say; calls
// past the most wait in turn.
const (
	fewThreads  = 2
	mostThreads = 16
)

// traceScope is whom Yama lets look into others.
const traceScope = "/proc/sys/kernel/yama/ptrace_scope"

// blind reports whether this process can't look into the run, and so can't answer
// its calls: Yama allows it to nobody but root.
func blind() bool {
	scope, _ := os.ReadFile(traceScope)
	return os.Geteuid() != 0 && len(scope) > 0 && scope[0] >= '2'
}

// pool counts the threads that answer calls.
type pool struct {
	all, free atomic.Int32
}

// serve begins to answer what arrives.
func (b *broker) serve() {
	if !b.bounds.spaces {
		// Who answers runs where the caller did. Older kernels wake it elsewhere.
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(b.asked), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	}
	b.join()
}

// join adds a thread.
func (b *broker) join() {
	b.pool.all.Add(1)
	b.pool.free.Add(1)
	go func() {
		if !b.bounds.spaces {
			runtime.LockOSThread() // it ends with what it has become
			b.become()
		}
		for b.take() {
			if b.pool.free.Add(-1) >= fewThreads { // and others wait already
				break
			}
			b.pool.free.Add(1)
		}
		b.pool.all.Add(-1)
	}()
}

// work marks a thread as busy until the returned function is called, and has
// another one wait for calls meanwhile.
func (p *pool) work(b *broker) (done func()) {
	if p.free.Add(-1) <= 0 && !b.bounds.spaces && p.all.Load() < mostThreads {
		b.join()
	}
	return func() { p.free.Add(1) }
}

// become gives this thread no more rights over files than the run has. It keeps
// those over processes, which the run's calls are judged before.
func (b *broker) become() {
	if os.Geteuid() != 0 {
		return
	}
	if b.user.UID != 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
	}
	_, _ = unix.SetfsgidRetGid(int(b.user.GID))
	_, _ = unix.SetfsuidRetUid(int(b.user.UID))
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if unix.Capget(&head, &caps[0]) == nil {
		caps[0].Effective &= 1<<unix.CAP_KILL | 1<<unix.CAP_SYS_PTRACE
		caps[1].Effective = 0
		_ = unix.Capset(&head, &caps[0])
	}
}
