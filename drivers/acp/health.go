package acp

import (
	"context"
	"fmt"

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

// retry brings a failed agent back. A process is started only for one that has
// worked before; of another it is enough that it could be started.
func (a *agent) retry() {
	a.mu.Lock()
	switch {
	case a.keep.Stopped || a.keep.Over() || a.pe != nil || a.turn != nil:
		a.mu.Unlock()
		return
	case a.keep.Paused() != nil:
		a.keep.Postpone()
		a.mu.Unlock()
		return
	case !a.lasting:
		a.keep.Check(a.place.spec.Available())
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
	a.crashed = true
	a.keep.Fail(fmt.Sprintf("process %d %s", pe.proc.PID(), pe.exit.Describe()))
}

// startReason says why a process could not be used.
func startReason(err error) string { return core.ClipTo(err.Error(), 500) }
