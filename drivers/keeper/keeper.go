// Package keeper is what runtimes that keep local agents have in common: how
// an agent's state is reported, when a broken one is tried again, and what a
// prompt has come to that was ended before its time.
package keeper

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/fleet"
)

const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 30 * time.Second
	// manyFailures in a row make an agent failed instead of offline.
	manyFailures = 5
	// maxReason is the longest reason of a state, in bytes.
	maxReason = 500
)

// SoundAfter is how long a process lives to count as started well, which ends
// a row of failures.
const SoundAfter = 10 * time.Second

// Keeper keeps the state of one agent. Its owner holds a lock during every
// call, so that reports keep their order.
type Keeper struct {
	Notify func(fleet.Health)
	Life   context.Context // nothing is reported or tried after its end
	PID    func() int      // of the agent's process, 0 for none
	Retry  func()          // brings the agent back; called without the lock

	Stopped  bool // prompts are refused until a restart
	Restarts int

	closed   chan struct{}
	paused   chan struct{} // nil while not paused
	failures int           // in a row
	timer    *time.Timer   // the next try after a failure
	due      bool          // that try waits for Resume
}

// New makes the keeper of an agent that has just been opened.
func New(life context.Context, restarts int, notify func(fleet.Health), pid func() int, retry func()) Keeper {
	return Keeper{Notify: notify, Life: life, PID: pid, Retry: retry, Restarts: restarts, closed: make(chan struct{})}
}

// Tell reports a state.
func (k *Keeper) Tell(status fleet.AgentStatus, reason string) {
	if k.Over() {
		return
	}
	k.Notify(fleet.Health{Status: status, Reason: pipe.Clip(reason, maxReason), PID: k.PID(), Restarts: k.Restarts})
}

// Check makes the agent idle, or offline for the reason that it could not be
// started.
func (k *Keeper) Check(err error) {
	if err != nil {
		k.Fail(err.Error())
		return
	}
	k.Tell(fleet.Idle, "")
}

// Fail reports a failure and plans the next try, later each time.
func (k *Keeper) Fail(reason string) {
	k.failures++
	status := fleet.Offline
	if k.failures >= manyFailures {
		status = fleet.Failed
		reason = fmt.Sprintf("%s (failed %d times in a row; trying on)", pipe.Clip(reason, maxReason-60), k.failures)
	}
	k.Tell(status, reason)
	if k.Stopped || k.Over() {
		return
	}
	wait := lastBackoff
	if k.failures < 16 {
		wait = min(firstBackoff<<(k.failures-1), lastBackoff)
	}
	k.Later(wait, k.Retry)
}

// Well ends a row of failures.
func (k *Keeper) Well() { k.failures = 0 }

// Later plans one call; it takes the place of what was planned before.
func (k *Keeper) Later(d time.Duration, act func()) {
	k.Quiet()
	k.timer = time.AfterFunc(d, act)
}

// Quiet drops what was planned.
func (k *Keeper) Quiet() {
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}

// Pause makes Paused a channel that Resume closes.
func (k *Keeper) Pause() {
	if k.paused == nil {
		k.paused = make(chan struct{})
	}
}

// Paused is nil while the agent is not paused.
func (k *Keeper) Paused() <-chan struct{} { return k.paused }

// Postpone keeps a try that has come while the agent is paused.
func (k *Keeper) Postpone() { k.due = true }

// Resume lets what waited for it go on.
func (k *Keeper) Resume() {
	if k.paused == nil {
		return
	}
	close(k.paused)
	k.paused = nil
	if k.due {
		k.due = false
		k.Later(0, k.Retry)
	}
}

// Close ends all reports and tries.
func (k *Keeper) Close() {
	if !k.IsClosed() {
		close(k.closed)
	}
	k.Quiet()
}

// Closed is closed by Close; it may be read without the lock.
func (k *Keeper) Closed() <-chan struct{} { return k.closed }

// IsClosed may be called without the lock.
func (k *Keeper) IsClosed() bool {
	select {
	case <-k.closed:
		return true
	default:
		return false
	}
}

// Over reports whether nobody is to hear of the agent any more.
func (k *Keeper) Over() bool { return k.Life.Err() != nil || k.IsClosed() }
