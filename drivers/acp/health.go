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
		if a.pe != nil && a.turn == nil {
			a.keep.Up() // it takes the next prompt
		}
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
		a.keep.Sound()
	}
	if why != "" {
		a.keep.Tell(fleet.Idle, "")
		return
	}
	a.crashed, a.keep.Said = true, pe.lastLines()
	a.keep.Fail(fmt.Sprintf("process %d %s", pe.proc.PID(), pe.exit.Describe()), true)
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
		if a.pe != pe || a.turn != nil || a.keep.Paused() != nil || a.keep.Stopped || a.keep.Over() || a.keep.Rests() {
			return
		}
		a.pe, a.sess = nil, nil
		a.backlog.Add(fleet.Event{Type: "log", Level: "INFO", Text: fmt.Sprintf("its process ended after %v without work; the next task starts it again", after)})
		go func() { _ = a.r.pool.leave(context.Background(), pe, a) }()
		a.keep.Tell(fleet.Idle, "")
	})
}

// failed reports why its process can't be used; mu is held. One that ended by itself may do
// better; what an agent says, or does not say in time, somebody has to mend.
func (a *agent) failed(what string, err error) {
	if !errors.As(err, new(died)) {
		a.keep.Barred(what, err)
		return
	}
	reason := what + startReason(err)
	if code, says := keeper.Lacking(a.keep.Said); code != "" {
		lines := strings.Split(a.keep.Said, "\n")
		a.keep.Needs(says+reason+": "+lines[len(lines)-1], false)
		return
	}
	a.keep.Fail(reason, false)
}

// refuses notes that the agent refused a prompt for want of a login, its model, or more that
// is not the prompt's fault. Its process reads a login anew if its conversation outlives it.
func (a *agent) refuses(pe *peer, why string) {
	a.mu.Lock()
	leaves := a.pe == pe && pe.resumes()
	if leaves {
		a.pe, a.sess = nil, nil
	}
	a.keep.Needs("its last prompt failed: "+why, true)
	a.mu.Unlock()
	if leaves {
		_ = a.r.pool.leave(context.Background(), pe, a)
	}
}

// startReason says why a process could not be used.
func startReason(err error) string { return core.ClipTo(err.Error(), 500) }
