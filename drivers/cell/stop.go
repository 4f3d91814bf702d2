package cell

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
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

// tree lists every live or unreaped process of the run, oldest first: in a
// name space or below a subreaper all of them descend from the init.
func (p *Process) tree() []proc {
	select {
	case <-p.gone:
		return nil // the number may be another's by now
	default:
		return descendants(p.init)
	}
}

// left are those that still live.
func (p *Process) left() []proc {
	return core.Where(p.tree(), func(q proc) bool { return !q.Dead() })
}

// Census is processes by pid, with their start times.
type Census map[int]uint64

// Has reports whether exactly this process is in it.
func (c Census) Has(pid int, start uint64) bool {
	was, ok := c[pid]
	return ok && was == start
}

// Census names the run's processes of this moment.
func (p *Process) Census() Census {
	now := Census{}
	for _, q := range p.tree() {
		now[q.PID] = q.Start
	}
	return now
}

// Prune ends the processes of the run that are not to be kept, and leaves the
// first one alone: SIGTERM, then SIGKILL after the grace. It gives up after
// 5 s. A look misses a process whose parent dies meanwhile, so that two in a row
// have to find none.
func (p *Process) Prune(keep func(pid int, start uint64) bool, grace time.Duration) {
	began, first := time.Now(), true
	for none := 0; none < 2 && time.Since(began) < killPatience; {
		extra := core.Where(p.left(), func(q proc) bool { return q.PID != p.pid && !keep(q.PID, q.Start) })
		if len(extra) == 0 {
			none++
			continue
		}
		if none = 0; first {
			signalAll(extra, unix.SIGTERM)
			first = false
		} else if time.Since(began) > grace {
			signalAll(extra, unix.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func signalAll(list []proc, sig unix.Signal) {
	for _, q := range list {
		q.send(sig)
	}
}

// describe names processes with their states.
func describe(list []proc) string {
	var b strings.Builder
	for i, q := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(q.PID) + " (state " + string(q.State) + ")")
	}
	return b.String()
}
