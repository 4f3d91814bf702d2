package terminal

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/terminal"
)

// agent is one open agent: at most one program and one prompt at a time.
//
// Lock order: agent.mu, then a session's own. Nothing that can block is called
// with mu held, except the start of a program.
type agent struct {
	sup    *cell.Supervisor
	opt    Options
	own    agentOptions
	tenant string
	spec   cell.Spec
	unhook func() bool
	home   *home.Home // nil for none that is kept
	host   string     // that it runs on; "" for this machine
	// unfollow ends what is told of the link to its host; nil without one.
	unfollow func()

	mu      sync.Mutex
	sess    *session // until its process, output and leftovers are gone
	shown   *session // whose picture is shown: sess, or the last there was
	turn    *turn
	keep    keeper.Keeper
	size    terminal.Size
	crashed bool          // its last program crashed: the next one is a restart
	backlog []fleet.Event // for the log of the next prompt

	seen    sync.Mutex
	changed chan struct{} // closed at the next change of the picture
	asked   bool          // somebody waits for it
}

var (
	_ fleet.Handle      = (*agent)(nil)
	_ terminal.Terminal = (*agent)(nil)
)

// pid is the process that runs; mu is held.
func (a *agent) pid() int {
	if a.sess == nil || a.sess.proc.Ended() {
		return 0
	}
	return a.sess.proc.PID()
}

// retry has a failed agent tried again: it is enough that it could be started.
func (a *agent) retry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.keep.Stopped && !a.keep.Over() && a.sess == nil {
		a.keep.Check(a.available())
	}
}

// launch starts the program; mu is held. Run is called once the lock is free.
func (a *agent) launch(parent string) (*session, error) {
	spec := a.spec
	spec.Terminal = &cell.Size{Cols: a.size.Cols, Rows: a.size.Rows}
	if a.home != nil {
		if err := a.home.Furnish(); err != nil {
			return nil, err
		}
		if e, has := a.home.LoggedIn(); has {
			a.backlog = append(a.backlog, e)
		}
	}
	spec.Env = cell.Traced(spec.Env, parent)
	env, mask, err := a.opt.Secrets(context.Background(), a.tenant, spec.Env)
	if err != nil {
		return nil, err
	}
	spec.Env, spec.Keep = env, &cell.Keep{Stdout: true, Mask: mask}
	proc, err := a.start(spec)
	if err != nil {
		return nil, err
	}
	if a.crashed {
		a.crashed = false
		a.keep.Restarts++
	}
	from := uint64(0)
	if a.shown != nil {
		from = a.shown.screen.Rev()
	}
	a.sess = newSession(a, proc, mask, from)
	a.shown = a.sess
	a.keep.Lacks = strings.Join(proc.Missing(), ", ")
	if e, lacks := keeper.Unheld(proc.Missing()); lacks {
		a.backlog = append(a.backlog, e)
	}
	return a.sess, nil
}

// over is called when a program has ended with nothing left of it.
func (a *agent) over(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sess == s {
		a.sess = nil
	}
	if a.keep.Stopped || a.keep.IsClosed() {
		return
	}
	exit := s.exit
	if exit.Duration >= keeper.SoundAfter {
		a.keep.Well()
	}
	asked := s.ending || a.turn != nil && a.turn.Ending() != keeper.Running
	// A shell's status is that of its last command: only a start that fails, and a
	// signal that nobody sent, say that something is wrong.
	if !asked && (exit.Signal != 0 || exit.Code != 0 && exit.Duration < settleTime) {
		a.crashed = true
		a.keep.Fail(fmt.Sprintf("process %d %s", s.proc.PID(), exit.Describe()))
		return
	}
	a.keep.Tell(fleet.Idle, "")
}

// settleTime is how long a program lives that could be started.
const settleTime = time.Second

func (a *agent) Interrupt() { keeper.Interrupt(&a.mu, &a.turn) }

// Pause implements fleet.Handle. An agent without a program is paused by being
// told: a prompt, or who opens its terminal, then waits for Resume.
func (a *agent) Pause(ctx context.Context) error {
	return keeper.Pause(ctx, &a.keep, &a.mu, &a.sess)
}

func (a *agent) Resume(ctx context.Context) error {
	return keeper.Resume(ctx, &a.keep, &a.mu, &a.sess)
}

// Stop implements fleet.Handle. Prompts are refused until Restart.
func (a *agent) Stop(ctx context.Context) error {
	return a.keep.Stop(&a.mu, func() error { return a.endProcess(ctx, keeper.ByStop) })
}

// Restart implements fleet.Handle. The program runs again with the next prompt,
// or when its terminal is opened.
func (a *agent) Restart(ctx context.Context) error {
	return a.keep.Restart(&a.mu, func() error { return a.endProcess(ctx, keeper.ByRestart) }, func() error {
		a.crashed = false
		return a.available()
	})
}

func (a *agent) Close() error {
	a.mu.Lock()
	a.keep.Close()
	a.mu.Unlock()
	a.unhook()
	if a.unfollow != nil {
		a.unfollow()
	}
	return a.endProcess(context.Background(), keeper.ByStop)
}

// endProcess ends the prompt and the program, and waits until both are gone.
func (a *agent) endProcess(ctx context.Context, why keeper.Ending) error {
	a.mu.Lock()
	a.keep.Quiet()
	t, s := a.turn, a.sess
	if s != nil {
		s.ending = true
	}
	if t != nil {
		t.End(why, why.String())
	}
	a.mu.Unlock()
	if s == nil {
		return nil
	}
	// Who sits at a terminal hangs up.
	return keeper.Ended(ctx, func() error {
		s.stop(cell.Grace{Interrupt: -1, Terminate: time.Second})
		return s.errs
	}, s.ended)
}

var errStopped = core.Errorf(core.Unavailable, "ended before it began")
