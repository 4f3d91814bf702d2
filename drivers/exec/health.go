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

// retry brings a failed agent back. Only a command that is known to stay
// alive and wait for prompts is started; any other one would begin its work
// unasked, and it is enough that it could be started.
func (a *agent) retry() {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	switch {
	case a.Keep.Stopped || a.Keep.Over() || a.Sess != nil:
		return
	case a.Keep.Paused() != nil:
		a.Keep.Postpone()
		return
	case !a.lasting:
		a.Keep.Check(a.Available())
		return
	}
	if err := a.launch(nil); err != nil {
		a.Keep.Barred("can't restart: ", err)
		return
	}
	a.Keep.Tell(fleet.Starting, "")
	s := a.Sess
	go s.run()
	a.Keep.Later(settleTime, func() {
		a.Mu.Lock()
		defer a.Mu.Unlock()
		if a.Sess == s && !s.Proc.Ended() && !s.Ending {
			a.Keep.Up()
		}
	})
}

// over is called when a session has ended with nothing left of it; t is the
// turn it was serving, nil when it was idle.
func (a *agent) over(s *session, t *turn) {
	exit := s.Exit
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if !a.Left(s) {
		return
	}
	asked := s.Ending || t != nil && t.Ending() != keeper.Running
	lasting := a.lasting || t == nil && !s.unread && s.idle >= lingerTime
	crash := exit.Signal != 0 || exit.Code != 0 && lasting
	switch {
	case asked:
		a.Keep.Tell(fleet.Idle, "")
	case crash && (t != nil || lasting):
		a.lasting, a.Crashed = lasting, true
		a.Keep.Fail(fmt.Sprintf("process %d %s", s.Proc.PID(), exit.Describe()), true)
	default:
		a.lasting = a.lasting && exit.Code != 0
		a.Keep.Tell(fleet.Idle, "")
	}
}
