package exec

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// BecomeSubreaper makes this process the parent of every descendant that
// loses its own, so that none escapes. Call it once, before the first
// command. It changes the whole process; without it a run's orphans are
// found by a slower walk over all processes.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

func isSubreaper() bool {
	var on int32
	_, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER,
		uintptr(unsafe.Pointer(&on)), 0, 0, 0, 0)
	return errno == 0 && on != 0
}

// Supervisor starts processes and answers for all of them. It is safe for
// concurrent use.
type Supervisor struct {
	instance string
	tagBase  uint64
	lastRun  atomic.Uint64
	narrow   bool // orphans are our children, and /proc lists children

	calls chan startCall
	end   chan struct{}
	wg    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	mains  map[int]*Process      // by pid, until reaped
	live   map[*Process]struct{} // until nothing of the run is left
}

// NewSupervisor begins supervising. Instance names the engine and its data
// file: the same after a restart, so that Sweep finds what a former engine
// left, and different for every other engine on the machine. It must not
// be empty nor contain "/".
func NewSupervisor(instance string) (*Supervisor, error) {
	if instance == "" || len(instance) > 64 || strings.ContainsAny(instance, "/\x00") {
		return nil, core.Invalid("instance", instance, `1-64 characters without "/"`)
	}
	var seed [4]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("mark for runs: %w", err)
	}
	s := &Supervisor{
		instance: instance,
		// 0x5d, 24 random bits, a 32-bit count: far above any real limit,
		// below infinity, and not shared with another engine's runs.
		tagBase: 0x5d<<56 | uint64(binary.BigEndian.Uint32(seed[:])>>8)<<32,
		calls:   make(chan startCall),
		end:     make(chan struct{}),
		mains:   map[int]*Process{},
		live:    map[*Process]struct{}{},
	}
	s.narrow = isSubreaper() && hasChildrenFiles()
	s.wg.Add(2)
	go s.spawn()
	go s.reap()
	return s, nil
}

// spawn starts every process from one thread that lives as long as the
// supervisor: the kernel's parent-death signal watches the thread that
// forked, not the process, and so does tracing. The thread ends with this
// goroutine, which kills whatever is still running.
func (s *Supervisor) spawn() {
	defer s.wg.Done()
	runtime.LockOSThread()
	for {
		select {
		case c := <-s.calls:
			c.out <- c.start()
		case <-s.end:
			return
		}
	}
}

// fork starts a program; prepare sees it before its first instruction,
// unless the system forbids that or the program changes its user, which it
// could not while it is held. Then prepare runs right after the start.
func (s *Supervisor) fork(path string, argv []string, attr *os.ProcAttr, prepare func(pid int) error) (*os.Process, error) {
	out := make(chan startReply, 1)
	select {
	case s.calls <- startCall{path, argv, attr, prepare, out}:
		r := <-out
		return r.p, r.err
	case <-s.end:
		return nil, errClosed
	}
}

var errClosed = errors.New("the supervisor is closed")

// Close stops every process that is still running and waits for it.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	procs := make([]*Process, 0, len(s.live))
	for p := range s.live {
		procs = append(procs, p)
	}
	s.mu.Unlock()

	errs := make([]error, len(procs))
	var wg sync.WaitGroup
	for i, p := range procs {
		wg.Go(func() { errs[i] = p.Stop(Grace{}) })
	}
	wg.Wait()
	close(s.end)
	s.wg.Wait()
	return errors.Join(errs...)
}

// reap collects the orphans that end by themselves while their run goes on.
// It touches only processes with one of our marks, never a child that some
// other part of the program started and waits for.
func (s *Supervisor) reap() {
	defer s.wg.Done()
	if !s.narrow {
		return // they are not our children
	}
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.end:
			return
		case <-tick.C:
			if s.busy() {
				s.reapOrphans()
			}
		}
	}
}

func (s *Supervisor) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live) > 0
}

func (s *Supervisor) register(p *Process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.mains[p.pid] = p
	s.live[p] = struct{}{}
	return nil
}

func (s *Supervisor) forgetMain(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mains[p.pid] == p { // the pid may already be a newer run's
		delete(s.mains, p.pid)
	}
}

func (s *Supervisor) forget(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, p)
}

func (s *Supervisor) reapOrphans() {
	for _, pid := range childrenOf(os.Getpid()) {
		if s.isMain(pid) || tagOf(pid)>>32 != s.tagBase>>32 {
			continue
		}
		if p, ok := look(pid); ok && p.state == 'Z' {
			collect(pid)
		}
	}
}

// isMain reports whether a pid is the first process of a run, which its own
// Process waits for.
func (s *Supervisor) isMain(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mains[pid] != nil
}

// collect reaps one child of ours if it has ended.
func collect(pid int) {
	for {
		_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
