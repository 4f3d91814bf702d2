package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// retry brings an agent up, or a failed one back.
func (a *agent) retry() {
	a.Mu.Lock()
	switch {
	case a.Keep.Stopped || a.Keep.Over() || a.Sess != nil:
		if a.Sess != nil && a.Turn == nil {
			a.Keep.Up() // it takes the next prompt
		}
		a.Mu.Unlock()
		return
	case a.Turn != nil: // it starts one itself, or is about to end
		a.Keep.Later(retryBeside, a.retry)
		a.Mu.Unlock()
		return
	case a.Keep.Paused() != nil:
		a.Keep.Postpone()
		a.Mu.Unlock()
		return
	}
	ctx, stop := context.WithCancel(a.Keep.Life)
	defer stop()
	a.stopStart = stop
	a.Mu.Unlock()
	a.starting.Lock()
	defer a.starting.Unlock()
	a.Mu.Lock()
	needless := a.Sess != nil || a.Keep.Stopped || a.Keep.IsClosed()
	a.Mu.Unlock()
	if !needless {
		_ = a.start(ctx) // a failure has been reported, and plans the next try
	}
}

// retryBeside is how long a try waits for a prompt that is under way.
const retryBeside = 100 * time.Millisecond

// over is called when a process has ended with nothing left of it; why is our
// own reason, "" when it ended by itself.
func (a *agent) over(pe *peer, why string) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if a.Sess != pe {
		return
	}
	a.talk = nil
	if !a.Left(pe) {
		return
	}
	if why != "" {
		a.Keep.Tell(fleet.Idle, "")
		return
	}
	a.Crashed, a.Keep.Said = true, pe.lastLines()
	a.Keep.Fail(fmt.Sprintf("process %d %s", pe.Proc.PID(), pe.Exit.Describe()), true)
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
	case a.Sess == nil || a.Turn != nil || after < 0:
		return
	case after == 0 && !a.Sess.resumes():
		return // its conversation would be lost
	case after == 0:
		after = defaultSleep
	}
	pe := a.Sess
	a.sleeping = time.AfterFunc(after, func() {
		a.Mu.Lock()
		defer a.Mu.Unlock()
		if a.Sess != pe || a.Turn != nil || a.Keep.Paused() != nil || a.Keep.Stopped || a.Keep.Over() || a.Keep.Rests() {
			return
		}
		a.Sess, a.talk = nil, nil
		a.Backlog.Add(fleet.Event{Type: "log", Level: "INFO", Text: fmt.Sprintf("its process ended after %v without work; the next task starts it again", after)})
		go func() { _ = a.r.pool.leave(context.Background(), pe, a) }()
		a.Keep.Tell(fleet.Idle, "")
	})
}

// failed reports why its process can't be used; mu is held. One that ended by itself may do
// better; what an agent says, or does not say in time, somebody has to mend.
func (a *agent) failed(what string, err error) {
	if !errors.As(err, new(died)) {
		a.Keep.Barred(what, err)
		return
	}
	reason := what + startReason(err)
	if code, says := keeper.Lacking(a.Keep.Said); code != "" {
		lines := strings.Split(a.Keep.Said, "\n")
		a.Keep.Needs(says+reason+": "+lines[len(lines)-1], false)
		return
	}
	a.Keep.Fail(reason, false)
}

// refuses notes that the agent refused a prompt for want of a login, its model, or more that
// is not the prompt's fault. Its process reads a login anew if its conversation outlives it.
func (a *agent) refuses(pe *peer, why string) {
	a.Mu.Lock()
	leaves := a.Sess == pe && pe.resumes()
	if leaves {
		a.Sess, a.talk = nil, nil
	}
	a.Keep.Needs("its last prompt failed: "+why, true)
	a.Mu.Unlock()
	if leaves {
		_ = a.r.pool.leave(context.Background(), pe, a)
	}
}

// startReason says why a process could not be used.
func startReason(err error) string { return core.ClipTo(err.Error(), 500) }
