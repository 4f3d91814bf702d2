package exec

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

// killGrace lies between SIGTERM and SIGKILL when an interrupted prompt did
// not end in time.
const killGrace = 300 * time.Millisecond

// follow watches a turn until it ends. It reports again when the process left
// without having read the task, so that another one must have it.
func (a *agent) follow(t *turn, s *session) (out task.Outcome, again bool) {
	t.Helper.Go(func() { t.Speak(t.flush) }) // unless the agent's next event has already done so
	stop, ended := t.Stop, t.Context.Done()
	var kill <-chan time.Time
	for {
		select {
		case <-t.done:
			return a.finished(t, s), false
		case <-s.Over:
			if t.settled() {
				return a.finished(t, s), false
			}
			return a.exited(t, s)
		case <-ended:
			ended = nil
			t.End(keeper.ByCancel, keeper.ByCancel.String())
		case <-stop:
			stop = nil
			a.interrupt(t, s)
			kill = time.After(a.Grace - killGrace)
		case <-kill:
			kill = nil
			t.Cancel() // its end must not wait for a log that does not move
			go s.Stop(cell.Grace{Interrupt: -1, Terminate: killGrace})
		}
	}
}

// interrupt tells the agent to let go, or ends its process if that is wanted
// anyway.
func (a *agent) interrupt(t *turn, s *session) {
	if a.ToEnd(s, t.Ending()) {
		go s.Stop(a.End)
		return
	}
	_ = s.send(a.cancelLine) // to one on a wire nothing; full: then the signal has to do
	if a.interrupts != 0 {
		s.Proc.Interrupt(a.interrupts)
	}
}

// finished makes the outcome of a turn with a result.
func (a *agent) finished(t *turn, s *session) task.Outcome {
	s.quiesce()
	how := t.Ending()
	if how != keeper.Running && !s.Proc.Ended() {
		// An agent may say that it has stopped while its tools still run.
		s.Proc.Prune(killGrace)
	}
	a.Mu.Lock()
	if how == keeper.Running {
		a.Keep.Well()
		a.lasting = a.lasting || t.reused
	}
	a.Mu.Unlock()

	t.mu.Lock()
	defer t.mu.Unlock()
	return t.OnPurpose(*t.outcome)
}

// exited makes the outcome of a turn whose process ended without a result.
func (a *agent) exited(t *turn, s *session) (out task.Outcome, again bool) {
	a.Mu.Lock()
	if s.Exit.Code == 0 && a.wire == nil {
		a.Keep.Well()
	}
	a.Mu.Unlock()
	if a.wire != nil {
		return a.exitedOnWire(t, s)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Ending() == keeper.Running && t.reused && !t.heard && (s.unread || s.idle < lingerTime || !t.lasting && s.Exit.Code == 0) {
		return out, true // it was on its way out when the task came
	}
	exit := s.Exit
	tail := strings.ToValidUTF8(string(t.tail[max(0, len(t.tail)-tailBytes):]), "\uFFFD")
	output := core.MustEncode(struct {
		RC     int    `json:"rc"`
		Stdout string `json:"stdout"`
	}{exit.Code, tail})
	message := unfinished(exit, t.warning)
	out, died := keeper.Died(exit, message)
	switch {
	case died:
	case t.reused:
		// It knows how to give a result, so its exit is none, whatever the status.
		out = keeper.Failure("agent_exit", message, true)
	case exit.Code != 0:
		out = a.gaveUp(message)
	default:
		out = task.Outcome{Status: task.Succeeded, Text: tail}
	}
	out.Output = output
	return t.OnPurpose(out), false
}

// unfinished says of a process that gave no result why: what it said last, which a list
// shows the beginning of, and how it ended.
func unfinished(exit cell.Exit, said string) string {
	how := "the agent's process " + exit.Describe() + " without a result"
	if said == "" {
		return how
	}
	return said + " (" + how + ")"
}

// gaveUp makes the outcome of a turn of a program that failed by its status. One that says
// that it lacks a login may have worked until then.
func (a *agent) gaveUp(message string) task.Outcome {
	code, says := keeper.Lacking(message)
	if code == "" {
		return keeper.Failure("agent_exit", message, false)
	}
	a.Mu.Lock()
	a.Keep.Needs(says+message, true)
	a.Mu.Unlock()
	return keeper.Failure(code, says+message, true)
}

// refused makes the outcome of a turn that no process took.
func (t *turn) refused(err error) task.Outcome {
	return t.Refused(err, func(err error) task.Outcome {
		if errors.Is(err, pipe.ErrFull) {
			return keeper.Failure("agent_stuck", err.Error(), true)
		}
		e := startError(err)
		e.Retryable = true // when it can be started
		return failed(e)
	})
}

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
