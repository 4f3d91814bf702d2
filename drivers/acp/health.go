package acp

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/fleet"
)

const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 30 * time.Second
	// manyFailures in a row make an agent failed instead of offline.
	manyFailures = 5
	// soundAfter is how long a process lives to count as started well, which
	// ends a row of failures.
	soundAfter = 10 * time.Second
)

// tell reports the agent's health; mu is held, so reports keep their order.
func (a *agent) tell(status fleet.AgentStatus, reason string) {
	if a.life.Err() != nil || a.isClosed() {
		return
	}
	h := fleet.Health{Status: status, Reason: clip(reason, 500), Restarts: a.restarts}
	if a.pe != nil && a.pe.proc != nil {
		h.PID = a.pe.proc.PID()
	}
	a.notify(h)
}

// check makes the agent idle if its command could be started, else offline;
// mu is held.
func (a *agent) check() {
	if err := a.place.spec.Available(); err != nil {
		a.fail(err.Error())
		return
	}
	a.tell(fleet.Idle, "")
}

// fail reports a failure and plans the next try, later each time; mu is held.
func (a *agent) fail(reason string) {
	a.failures++
	status := fleet.Offline
	if a.failures >= manyFailures {
		status = fleet.Failed
		reason = fmt.Sprintf("%s (failed %d times in a row; trying on)", clip(reason, 400), a.failures)
	}
	a.tell(status, reason)
	if a.stopped || a.isClosed() {
		return
	}
	wait := lastBackoff
	if a.failures < 16 {
		wait = min(firstBackoff<<(a.failures-1), lastBackoff)
	}
	a.retryIn(wait)
}

// retryIn plans the next try; mu is held.
func (a *agent) retryIn(d time.Duration) {
	a.quiet()
	a.timer = time.AfterFunc(d, a.retry)
}

// quiet drops the planned try; mu is held.
func (a *agent) quiet() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// retry brings a failed agent back. A process is started only for one that has
// worked before; of another it is enough that it could be started.
func (a *agent) retry() {
	a.mu.Lock()
	switch {
	case a.stopped || a.isClosed() || a.life.Err() != nil || a.pe != nil || a.turn != nil:
		a.mu.Unlock()
		return
	case a.paused != nil:
		a.due = true
		a.mu.Unlock()
		return
	case !a.lasting:
		a.check()
		a.mu.Unlock()
		return
	}
	a.tell(fleet.Starting, "")
	ctx, stop := context.WithCancel(a.life)
	defer stop()
	a.stopStart = stop
	a.mu.Unlock()
	a.starting.Lock()
	defer a.starting.Unlock()
	a.mu.Lock()
	needless := a.pe != nil || a.stopped || a.isClosed()
	a.mu.Unlock()
	if !needless {
		_ = a.start(ctx) // a failure has been reported, and plans the next try
	}
}

// over is called when a process has ended with nothing left of it; why is our
// own reason, "" when it ended by itself.
func (a *agent) over(pe *peer, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pe != pe {
		return
	}
	a.pe, a.sess = nil, nil
	if a.stopped || a.isClosed() {
		return
	}
	if pe.exit.Duration >= soundAfter {
		a.failures = 0
	}
	if why != "" {
		a.tell(fleet.Idle, "")
		return
	}
	a.crashed = true
	a.fail(fmt.Sprintf("process %d %s", pe.proc.PID(), pe.exit.Describe()))
}

// startReason says why a process could not be used.
func startReason(err error) string { return clip(err.Error(), 500) }
