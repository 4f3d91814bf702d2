package exec

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

// killGrace lies between SIGTERM and SIGKILL when an interrupted prompt did
// not end in time.
const killGrace = 300 * time.Millisecond

// follow watches a turn until it ends. It reports again when the process left
// without having read the task, so that another one must have it.
func (a *agent) follow(t *turn, s *session) (out swarm.Outcome, again bool) {
	t.helper.Go(t.catchUp)
	stop, ended := t.stop, t.ctx.Done()
	var kill <-chan time.Time
	for {
		select {
		case <-t.done:
			return a.finished(t, s), false
		case <-s.ended:
			if t.settled() {
				return a.finished(t, s), false
			}
			return a.exited(t, s)
		case <-ended:
			ended = nil
			t.end(byCancel, byCancel.String())
		case <-stop:
			stop = nil
			a.interrupt(t, s)
			kill = time.After(a.opt.Grace - killGrace)
		case <-kill:
			kill = nil
			t.cancel() // its end must not wait for a log that does not move
			go s.stop(Grace{Interrupt: -1, Terminate: killGrace})
		}
	}
}

// interrupt tells the agent to let go, or ends its process if that is wanted
// anyway.
func (a *agent) interrupt(t *turn, s *session) {
	a.mu.Lock()
	paused := a.paused != nil
	how := t.ended()
	if paused || how == byStop || how == byRestart {
		s.ending = true
	}
	ending := s.ending
	a.mu.Unlock()
	if ending {
		// Frozen, or to be ended anyway: nothing is asked of it.
		go s.stop(Grace{Interrupt: 500 * time.Millisecond, Terminate: time.Second})
		return
	}
	_ = s.send(a.opt.CancelLine) // full: then the signal has to do
	s.proc.Interrupt(a.opt.Interrupt)
}

// finished makes the outcome of a turn with a result.
func (a *agent) finished(t *turn, s *session) swarm.Outcome {
	s.quiesce()
	how := t.ended()
	if how != running && !s.proc.reaped() {
		// An agent may say that it has stopped while its tools still run.
		s.proc.Prune(t.before.Has, killGrace)
	}
	a.mu.Lock()
	if how == running {
		a.failures = 0
		a.lasting = a.lasting || t.reused
	}
	a.mu.Unlock()

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken != nil {
		return t.stopped(fail("agent_protocol", t.broken.Error(), false))
	}
	e := t.result
	out := swarm.Outcome{Status: swarm.Succeeded, Output: e.Output, Confidence: e.Confidence, Text: string(e.Output)}
	if e.Status != "succeeded" {
		out.Status = swarm.Failed
		message := e.Error
		if message == "" {
			message = "the agent gave no reason"
		}
		out.Error = &swarm.TaskError{Code: "agent_failed", Message: pipe.Clip(pipe.Text([]byte(message)), maxMessage)}
	}
	return t.stopped(out)
}

// exited makes the outcome of a turn whose process ended without a result.
func (a *agent) exited(t *turn, s *session) (out swarm.Outcome, again bool) {
	a.mu.Lock()
	if s.exit.Code == 0 {
		a.failures = 0
	}
	a.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.how == running && t.reused && !t.heard && (s.unread || s.idle < lingerTime || !t.lasting && s.exit.Code == 0) {
		return out, true // it was on its way out when the task came
	}
	exit := s.exit
	tail := strings.ToValidUTF8(string(t.tail[max(0, len(t.tail)-tailBytes):]), "\uFFFD")
	output := core.MustEncode(struct {
		RC     int    `json:"rc"`
		Stdout string `json:"stdout"`
	}{exit.Code, tail})
	message := "the agent's process " + exit.Describe() + " without a result"
	if t.warning != "" {
		message += ": " + t.warning
	}
	switch {
	case exit.limited():
		out = fail("limit_exceeded", message, false)
	case exit.Signal != 0:
		out = fail("agent_killed", message, true)
	case t.reused:
		// It knows how to give a result, so its exit is none, whatever the status.
		out = fail("agent_exit", message, true)
	case exit.Code != 0:
		out = fail("agent_exit", message, false)
	default:
		out = swarm.Outcome{Status: swarm.Succeeded, Text: tail}
	}
	out.Output = output
	return t.stopped(out), false
}

// refused makes the outcome of a turn that no process took.
func (t *turn) refused(err error) swarm.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(err, errStopped) && t.how == running:
		return fail("agent_closed", "the agent was closed before the task began", true)
	case errors.Is(err, errStopped):
		return t.stopped(fail("cancelled", "", false))
	case errors.Is(err, pipe.ErrFull):
		return fail("agent_stuck", err.Error(), true)
	}
	return failed(startError(err))
}

// stopped turns an outcome into that of a turn which was ended on purpose;
// t.mu is held.
func (t *turn) stopped(out swarm.Outcome) swarm.Outcome {
	e := &swarm.TaskError{Message: pipe.Clip(t.reason, maxMessage)}
	switch t.how {
	case running:
		return out
	case byAbort:
		out.Status, e.Code = swarm.Blocked, "approval_denied"
	case byRestart:
		out.Status, e.Code, e.Retryable = swarm.Failed, "agent_restarted", true
	default:
		out.Status, e.Code = swarm.Cancelled, "cancelled"
	}
	out.Error = e
	return out
}

func fail(code, message string, retryable bool) swarm.Outcome {
	return failed(swarm.TaskError{Code: code, Message: pipe.Clip(pipe.Text([]byte(message)), maxMessage), Retryable: retryable})
}

func (e ending) String() string {
	switch e {
	case byCancel:
		return "the task was cancelled"
	case byAbort:
		return "a denial ended the task"
	case byRestart:
		return "the agent was restarted"
	case byStop:
		return "the agent was stopped"
	}
	return fmt.Sprintf("ending %d", int(e))
}
