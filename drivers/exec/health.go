package exec

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/pipe"
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
	// settleTime is how long a restarted process is watched before the agent
	// is called idle.
	settleTime = 200 * time.Millisecond
	// leaveTime after its first result a command is let alone, in case it is a
	// one-shot that has not exited yet.
	leaveTime = 100 * time.Millisecond
	// lingerTime after a result tells a command that stays from one that is
	// on its way out.
	lingerTime = time.Second
)

// tell reports the agent's health; mu is held, so reports keep their order.
func (a *agent) tell(status fleet.AgentStatus, reason string) {
	if a.life.Err() != nil || a.isClosed() {
		return
	}
	h := fleet.Health{Status: status, Reason: pipe.Clip(reason, 500), Restarts: a.restarts}
	if a.sess != nil && !a.sess.proc.reaped() {
		h.PID = a.sess.proc.PID()
	}
	a.notify(h)
}

// check makes the agent idle if its command could be started, else offline;
// mu is held.
func (a *agent) check() {
	if err := a.spec.Available(); err != nil {
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
		reason = fmt.Sprintf("%s (failed %d times in a row; trying on)", reason, a.failures)
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

// retry brings a failed agent back. Only a command that is known to stay
// alive and wait for prompts is started; any other one would begin its work
// unasked, and it is enough that it could be started.
func (a *agent) retry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.stopped || a.isClosed() || a.life.Err() != nil || a.sess != nil:
		return
	case a.paused != nil:
		a.due = true
		return
	case !a.lasting:
		a.check()
		return
	}
	if err := a.launch(); err != nil {
		a.fail("can't restart: " + err.Error())
		return
	}
	a.tell(fleet.Starting, "")
	s := a.sess
	a.timer = time.AfterFunc(settleTime, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.sess == s && !s.proc.reaped() && !s.ending {
			a.tell(fleet.Idle, "")
		}
	})
}

// over is called when a session has ended with nothing left of it; t is the
// turn it was serving, nil when it was idle.
func (a *agent) over(s *session, t *turn) {
	exit := s.exit
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sess == s {
		a.sess = nil
	}
	if a.stopped || a.isClosed() {
		return
	}
	if exit.Duration >= soundAfter {
		a.failures = 0
	}
	asked := s.ending || t != nil && t.ended() != running
	lasting := a.lasting || t == nil && !s.unread && s.idle >= lingerTime
	crash := exit.Signal != 0 || exit.Code != 0 && lasting
	switch {
	case asked:
		a.tell(fleet.Idle, "")
	case crash && (t != nil || lasting):
		a.lasting, a.crashed = lasting, true
		a.fail(fmt.Sprintf("process %d %s", s.proc.PID(), exit.Describe()))
	default:
		a.lasting = a.lasting && exit.Code != 0
		a.tell(fleet.Idle, "")
	}
}

// limited reports whether one of the run's Limits ended it.
func (e Exit) limited() bool {
	return e.Signal == unix.SIGXCPU || e.Signal == unix.SIGXFSZ
}

// Describe says how it ended: "exited with status 1".
func (e Exit) Describe() string {
	if e.Signal != 0 {
		return "was ended by " + unix.SignalName(e.Signal)
	}
	return fmt.Sprintf("exited with status %d", e.Code)
}
