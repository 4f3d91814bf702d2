package terminal

import (
	"fmt"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/terminal"
)

// agent is one open agent: at most one program and one prompt at a time.
type agent struct {
	keeper.Agent[*session, *turn]
	own agentOptions

	// Guarded by Mu.
	shown *session // whose picture is shown: Sess, or the last there was
	size  terminal.Size

	seen    sync.Mutex
	changed chan struct{} // closed at the next change of the picture
	asked   bool          // somebody waits for it
}

var (
	_ fleet.Handle      = (*agent)(nil)
	_ terminal.Terminal = (*agent)(nil)
)

// retry has a failed agent tried again: it is enough that it could be started.
func (a *agent) retry() {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if !a.Keep.Stopped && !a.Keep.Over() && a.Sess == nil {
		a.Keep.Check(a.Available())
	}
}

// launch starts the program; Mu is held.
func (a *agent) launch(parent string) error {
	a.Keep.Quiet()
	size := a.size
	run, err := a.Launch(parent, func(spec *cell.Spec, _ *secret.Mask) error {
		spec.Terminal = &size
		return nil
	})
	if err != nil {
		a.Keep.Barred("can't start: ", err)
		return err
	}
	from := uint64(0)
	if a.shown != nil {
		from = a.shown.screen.Rev()
	}
	a.Sess = newSession(a, run, from)
	a.shown = a.Sess
	go a.Sess.run()
	a.Keep.Up()
	return nil
}

// over is called when a program has ended with nothing left of it.
func (a *agent) over(s *session) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if !a.Left(s) {
		return
	}
	exit := s.Exit
	asked := s.Ending || a.Turn != nil && a.Turn.Ending() != keeper.Running
	// A shell's status is that of its last command: only a start that fails, and a
	// signal that nobody sent, say that something is wrong.
	if !asked && (exit.Signal != 0 || exit.Code != 0 && exit.Duration < settleTime) {
		a.Crashed = true
		a.Keep.Fail(fmt.Sprintf("process %d %s", s.Proc.PID(), exit.Describe()), true)
		return
	}
	a.Keep.Tell(fleet.Idle, "")
}

// settleTime is how long a program lives that could be started.
const settleTime = time.Second
