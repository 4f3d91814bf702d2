package cell

import (
	"cmp"
	"fmt"
	"syscall"
	"time"

	"swarmdeck/engine/core"

	"golang.org/x/sys/unix"
)

// Grace is how long Stop waits after each step before the next, harder one.
// Zero means the default, a negative time skips the step.
type Grace struct {
	Interrupt time.Duration // after SIGINT to the process group; default 1.5 s
	Terminate time.Duration // after SIGTERM to every process; default 1.5 s
}

const (
	defaultGrace = 1500 * time.Millisecond
	// A killed process can stay as long as the kernel needs for it, for example
	// while a network file system does not answer.
	killPatience = 5 * time.Second
)

func (g Grace) filled() Grace {
	return Grace{Interrupt: cmp.Or(g.Interrupt, defaultGrace), Terminate: cmp.Or(g.Terminate, defaultGrace)}
}

// Stop ends the run: SIGINT to its first process's group, SIGTERM to each of
// its processes, SIGKILL to all, every step only as far as something is left.
// It returns when none is left and all are reaped, or with an error that names
// those which the kernel could not end within 5 s. It also stands at the end of
// a run whose first process exited by itself, for what that left behind. A
// second Stop waits for the first.
//
// A paused run is killed at once: it would have to be continued to be asked,
// and what is frozen must not run again unless somebody resumes it.
func (p *Process) Stop(g Grace) error {
	g = g.filled()
	p.mu.Lock()
	p.stopping = true
	if p.alarm != nil {
		p.alarm.Stop()
	}
	p.mu.Unlock()
	p.stop <- struct{}{}
	defer func() { <-p.stop }()

	p.mu.Lock()
	if p.paused {
		g = Grace{Interrupt: -1, Terminate: -1}
	}
	p.mu.Unlock()
	if g.Interrupt > 0 && !p.Ended() {
		p.Interrupt(syscall.SIGINT)
		core.Within(p.done, g.Interrupt)
	}
	if g.Terminate > 0 && !p.isGone() {
		p.tell(wish{Kind: wishAll, Signal: unix.SIGTERM})
		core.Within(p.gone, g.Terminate)
	}
	return p.kill()
}

func (p *Process) isGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// kill ends everything with SIGKILL: the kernel kills all of a name space with
// its init. An init without one kills the rest before it goes.
func (p *Process) kill() error {
	if p.isGone() {
		return nil
	}
	p.group.kill()
	p.tell(wish{Kind: wishEnd})
	if p.spaces {
		p.signalInit(unix.SIGKILL)
	}
	core.Within(p.gone, killPatience/2)
	if !p.isGone() {
		signalAll(p.left(), unix.SIGKILL)
		p.signalInit(unix.SIGKILL)
		core.Within(p.gone, killPatience/2)
	}
	if p.isGone() {
		return nil
	}
	return fmt.Errorf("stop run %s: still there after SIGKILL: %s", p.run, describe(p.left()))
}

// signalInit signals the init, which this process alone reaps: its number is
// nobody else's until then.
func (p *Process) signalInit(sig syscall.Signal) { _ = p.child.Signal(sig) }
