package exec

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

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
	if g.Interrupt == 0 {
		g.Interrupt = defaultGrace
	}
	if g.Terminate == 0 {
		g.Terminate = defaultGrace
	}
	return g
}

// Stop ends the run: SIGINT to its group, SIGTERM to each of its processes,
// SIGKILL to each, every step only as far as something is left. It returns
// when none is left and all are reaped, or with an error that names those
// which the kernel could not end within 5 s. It also stands at the end of a
// run whose first process exited by itself, for what that left behind. A
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
	if g.Interrupt > 0 && !p.reaped() {
		p.Interrupt(syscall.SIGINT)
		select {
		case <-p.done:
		case <-time.After(g.Interrupt):
		}
	}
	if left := p.left(); len(left) > 0 && g.Terminate > 0 {
		p.signal(left, unix.SIGTERM)
		p.await(g.Terminate)
	}
	return p.kill()
}

// Prune ends the processes of the run that are not to be kept, and leaves the
// first one alone: SIGTERM, then SIGKILL after the grace. It gives up after
// 5 s.
func (p *Process) Prune(keep func(pid int, start uint64) bool, grace time.Duration) {
	began := time.Now()
	for first := true; time.Since(began) < killPatience; first = false {
		var extra []proc
		for _, q := range p.left() {
			if q.pid != p.pid && !keep(q.pid, q.start) {
				extra = append(extra, q)
			}
		}
		switch {
		case len(extra) == 0:
			return
		case first:
			p.signal(extra, unix.SIGTERM)
		case time.Since(began) > grace:
			p.signal(extra, unix.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// kill ends everything with SIGKILL, again and again: a process may fork
// between the look and the signal.
func (p *Process) kill() error {
	for deadline := time.Now().Add(killPatience); ; {
		left := p.left()
		if len(left) == 0 && p.reaped() {
			p.sup.forget(p)
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("stop run %s: still there after SIGKILL: %s", p.mark, describe(left))
		}
		if !p.reaped() {
			_ = unix.Kill(-p.pid, unix.SIGKILL)
		}
		p.signal(left, unix.SIGKILL)
		p.await(20 * time.Millisecond)
	}
}

// await waits until nothing is left, at most for d.
func (p *Process) await(d time.Duration) {
	deadline := time.Now().Add(d)
	for pause := time.Millisecond; time.Now().Before(deadline); pause = min(2*pause, 25*time.Millisecond) {
		if len(p.left()) == 0 && p.reaped() {
			return
		}
		time.Sleep(pause)
	}
}

// left reaps the run's ended orphans and lists its processes that still live,
// together with the first one until that is reaped.
func (p *Process) left() []proc {
	var list []proc
	self := os.Getpid()
	for _, q := range p.tree() {
		switch {
		case !q.dead():
			list = append(list, q)
		case q.pid == p.pid: // its own goroutine waits for it
		case q.ppid == self:
			collect(q.pid)
		}
		// Another's zombie is left to its parent, or comes to us with the
		// parent's end.
	}
	return list
}

func (p *Process) signal(list []proc, sig unix.Signal) {
	for _, q := range list {
		q.send(sig)
	}
}

func describe(list []proc) string {
	var b strings.Builder
	for i, q := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d (state %c)", q.pid, q.state)
	}
	return b.String()
}
