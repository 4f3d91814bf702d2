// Package keeper is what runtimes that keep local agents have in common: how
// an agent's state is reported, how it is stopped, when a broken one is tried
// again, and the life of a prompt up to what it has come to.
package keeper

import (
	"context"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

const (
	firstBackoff = 100 * time.Millisecond
	// manyFailures in a row are one that somebody has to mend.
	manyFailures = 5
	// maxReason is the longest reason of a state, in bytes.
	maxReason = 500
)

// SoundAfter is how long a process lives to count as started well, which ends
// a row of failures.
const SoundAfter = 10 * time.Second

// Keeper keeps the state of one agent. Its owner holds a lock during every
// call but Stop and Restart, so that reports keep their order.
type Keeper struct {
	Notify func(fleet.Health)
	Life   context.Context // nothing is reported or tried after its end
	PID    func() int      // of the agent's process, 0 for none
	Retry  func()          // brings the agent back; called without the lock

	Stopped  bool // prompts are refused until a restart
	Restarts int
	Lacks    string                                   // layers of the wall that the process goes without
	Said     string                                   // what a process wrote last that can't be used
	Greets   bool                                     // it is idle only once Retry has brought it up
	Depends  func() (program string, logins []string) // the files here that a start depends on; nil of an agent on a host

	offers *fleet.Offers // what its program can be set to, nil for unknown
	last   fleet.Health  // that was reported

	lock     sync.Locker // its owner's
	closed   chan struct{}
	paused   chan struct{}  // nil while not paused
	trouble  *fleet.Trouble // that somebody has to mend; never modified
	failures int            // in a row
	timer    *time.Timer    // the next try after a failure
	due      bool           // that try waits for Resume
}

// New makes the keeper of an agent that has just been opened, under its owner's lock.
func New(life context.Context, lock sync.Locker, a fleet.Agent, notify func(fleet.Health), pid func() int, retry func()) Keeper {
	return Keeper{
		Notify: notify, Life: life, PID: pid, Retry: retry, Restarts: a.Restarts,
		lock: lock, trouble: a.Trouble, closed: make(chan struct{}),
	}
}

// Tell reports a state.
func (k *Keeper) Tell(status fleet.AgentStatus, reason string) {
	if k.Over() {
		return
	}
	h := fleet.Health{Status: status, Reason: core.ClipTo(reason, maxReason), PID: k.PID(), Restarts: k.Restarts, Lacks: k.Lacks, Offers: k.offers, Trouble: k.trouble}
	if status == fleet.Offline || status == fleet.Failed {
		h.Said = k.Said
	}
	k.last = h
	k.Notify(h)
}

// Offer reports what the agent's program can be set to, in the state that it is in.
func (k *Keeper) Offer(o *fleet.Offers) {
	k.offers = o
	if k.last.Status == "" || k.Over() {
		return
	}
	k.last.Offers, k.last.PID = o, k.PID()
	k.Notify(k.last)
}

// ErrClosed is what a closed agent answers.
var ErrClosed = core.Errorf(core.Unavailable, "the agent is closed")

// Takes reports why the agent can't take a prompt; now is the one that it works
// on, if any.
func (k *Keeper) Takes(now *Turn) error {
	switch {
	case k.IsClosed():
		return ErrClosed
	case k.Stopped:
		return core.Errorf(core.Unavailable, "the agent is stopped")
	case now != nil:
		return core.Errorf(core.Conflict, "the agent works on task %s", now.Prompt.TaskID)
	}
	return nil
}

// Stop has prompts refused until Restart. Unlike the others it is called
// without the lock, since what end does may take a while.
func (k *Keeper) Stop(lock sync.Locker, end func() error) error {
	lock.Lock()
	k.Stopped = true
	lock.Unlock()
	if err := end(); err != nil {
		return fmt.Errorf("stop the agent: %w", err)
	}
	lock.Lock()
	defer lock.Unlock()
	if k.Stopped { // else it was restarted meanwhile
		k.Tell(fleet.Offline, "stopped")
	}
	return nil
}

// Restart has the agent as it was when it was opened; anew, under the lock,
// does its owner's part of that, and says why it could not be started. Like
// Stop it is called without the lock.
func (k *Keeper) Restart(lock sync.Locker, end, anew func() error) error {
	if err := end(); err != nil {
		return fmt.Errorf("restart the agent: %w", err)
	}
	lock.Lock()
	defer lock.Unlock()
	k.Stopped = false
	k.Sound()
	if k.trouble != nil { // it is told until it is mended
		t := *k.trouble
		t.Tries, t.NextAt = 0, time.Time{}
		k.trouble = &t
	}
	k.Resume()
	k.Quiet()
	k.Check(anew())
	return nil
}

// Check makes the agent idle, or starts one that greets, or has it offline for the reason
// that it could not be started.
func (k *Keeper) Check(err error) {
	switch {
	case err != nil:
		k.Barred("", err)
	case k.Rests():
		k.rest()
	case k.Greets:
		k.Tell(fleet.Starting, "")
		k.Later(0, k.Retry)
	default:
		k.Up()
	}
}

// Linked is told that the link to the host of an agent at rest is there, or why it is not.
func (k *Keeper) Linked(why error, available func() error) {
	if k.Stopped || k.Over() || k.paused != nil {
		return
	}
	if k.Sound(); why == nil {
		k.Quiet()
		why = available()
	}
	k.Check(why)
}

// Sound ends a row of failures that may pass.
func (k *Keeper) Sound() { k.failures = 0 }

// Up says that the agent's process can be used. Only a prompt mends what a prompt found.
func (k *Keeper) Up() {
	if k.trouble != nil && !k.trouble.Prompted {
		k.trouble = nil
	}
	k.Tell(fleet.Idle, "")
}

// Well says that the agent works.
func (k *Keeper) Well() {
	if k.Sound(); k.trouble != nil {
		if k.trouble = nil; k.last.Status == fleet.Idle {
			k.Tell(fleet.Idle, "")
		}
	}
}

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
func (k *Keeper) IsClosed() bool { return core.IsOver(k.closed) }

// Over reports whether nobody is to hear of the agent any more.
func (k *Keeper) Over() bool { return k.Life.Err() != nil || k.IsClosed() }
