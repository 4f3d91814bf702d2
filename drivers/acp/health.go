package acp

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// pid is the agent's process; mu is held.
func (a *agent) pid() int {
	if a.pe == nil || a.pe.proc == nil {
		return 0
	}
	return a.pe.proc.PID()
}

// retry brings an agent up, or a failed one back.
func (a *agent) retry() {
	a.mu.Lock()
	switch {
	case a.keep.Stopped || a.keep.Over() || a.pe != nil:
		a.mu.Unlock()
		return
	case a.turn != nil: // it starts one itself, or is about to end
		a.keep.Later(retryBeside, a.retry)
		a.mu.Unlock()
		return
	case a.keep.Paused() != nil:
		a.keep.Postpone()
		a.mu.Unlock()
		return
	}
	a.keep.Tell(fleet.Starting, "")
	ctx, stop := context.WithCancel(a.keep.Life)
	defer stop()
	a.stopStart = stop
	a.mu.Unlock()
	a.starting.Lock()
	defer a.starting.Unlock()
	a.mu.Lock()
	needless := a.pe != nil || a.keep.Stopped || a.keep.IsClosed()
	a.mu.Unlock()
	if !needless {
		_ = a.start(ctx) // a failure has been reported, and plans the next try
	}
}

// retryBeside is how long a try waits for a prompt that is under way.
const retryBeside = 100 * time.Millisecond

// over is called when a process has ended with nothing left of it; why is our
// own reason, "" when it ended by itself.
func (a *agent) over(pe *peer, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pe != pe {
		return
	}
	a.pe, a.sess = nil, nil
	if a.keep.Stopped || a.keep.IsClosed() {
		return
	}
	if pe.exit.Duration >= keeper.SoundAfter {
		a.keep.Well()
	}
	if why != "" {
		a.keep.Tell(fleet.Idle, "")
		return
	}
	a.crashed, a.keep.Said = true, pe.lastLines()
	a.keep.Fail(fmt.Sprintf("process %d %s", pe.proc.PID(), pe.exit.Describe()))
}

// defaultSleep is how long an agent may do nothing until its process ends, if it can take
// its conversation up again.
const defaultSleep = 15 * time.Minute

// sleepLater has the agent's process end after a while without work; the next task starts
// another. mu is held.
func (a *agent) sleepLater() {
	if a.sleeping != nil {
		a.sleeping.Stop()
		a.sleeping = nil
	}
	after, _ := a.place.sleep() // it was checked
	switch {
	case a.pe == nil || a.turn != nil || after < 0:
		return
	case after == 0 && !a.pe.resumes():
		return // its conversation would be lost
	case after == 0:
		after = defaultSleep
	}
	pe := a.pe
	a.sleeping = time.AfterFunc(after, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.pe != pe || a.turn != nil || a.keep.Paused() != nil || a.keep.Stopped || a.keep.Over() {
			return
		}
		a.pe, a.sess = nil, nil
		a.backlog.Add(fleet.Event{Type: "log", Level: "INFO", Text: fmt.Sprintf("its process ended after %v without work; the next task starts it again", after)})
		go func() { _ = a.r.pool.leave(context.Background(), pe, a) }()
		a.keep.Tell(fleet.Idle, "")
	})
}

// troubled notes what a prompt says about the agent: one that ended for want of a
// login or a model's key takes the next all the same, and says what is wrong.
func (a *agent) troubled(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.keep.Trouble == why {
		return
	}
	a.keep.Trouble = why
	if a.pe != nil {
		a.keep.Tell(fleet.Idle, "")
	}
}

// startReason says why a process could not be used.
func startReason(err error) string { return core.ClipTo(err.Error(), 500) }
