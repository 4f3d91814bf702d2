package exec

import (
	"fmt"
	"time"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/fleet"
)

const (
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

// pid is the process that runs; mu is held.
func (a *agent) pid() int {
	if a.sess == nil || a.sess.proc.Ended() {
		return 0
	}
	return a.sess.proc.PID()
}

// retry brings a failed agent back. Only a command that is known to stay
// alive and wait for prompts is started; any other one would begin its work
// unasked, and it is enough that it could be started.
func (a *agent) retry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.keep.Stopped || a.keep.Over() || a.sess != nil:
		return
	case a.keep.Paused() != nil:
		a.keep.Postpone()
		return
	case !a.lasting:
		a.keep.Check(a.available())
		return
	}
	if err := a.launch(""); err != nil {
		a.keep.Fail("can't restart: " + err.Error())
		return
	}
	a.keep.Tell(fleet.Starting, "")
	s := a.sess
	go s.run()
	a.keep.Later(settleTime, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.sess == s && !s.proc.Ended() && !s.ending {
			a.keep.Tell(fleet.Idle, "")
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
	if a.keep.Stopped || a.keep.IsClosed() {
		return
	}
	if exit.Duration >= keeper.SoundAfter {
		a.keep.Well()
	}
	asked := s.ending || t != nil && t.Ending() != keeper.Running
	lasting := a.lasting || t == nil && !s.unread && s.idle >= lingerTime
	crash := exit.Signal != 0 || exit.Code != 0 && lasting
	switch {
	case asked:
		a.keep.Tell(fleet.Idle, "")
	case crash && (t != nil || lasting):
		a.lasting, a.crashed = lasting, true
		a.keep.Fail(fmt.Sprintf("process %d %s", s.proc.PID(), exit.Describe()))
	default:
		a.lasting = a.lasting && exit.Code != 0
		a.keep.Tell(fleet.Idle, "")
	}
}
