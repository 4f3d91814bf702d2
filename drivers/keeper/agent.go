package keeper

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
)

// Agent is an agent that has its processes to itself, one at a time: most of a
// fleet.Handle. S is what its runtime has around a Run, T around a Turn.
//
// Lock order: Mu, then a session's and a turn's own. Nothing that can block is called
// with Mu held, except the start of a process.
type Agent[S session, T turn] struct {
	*Place

	Mu      sync.Mutex
	Sess    S // until its process, output and leftovers are gone
	Turn    T
	Keep    Keeper
	Crashed bool    // its last process crashed: the next one is a restart
	Backlog Backlog // for the log of the next prompt

	ways     Ways
	unhook   func() bool
	unfollow func() // nil without a host
}

// session is a runtime's own, around a Run.
type session interface {
	comparable
	Base() *Run
	Hear(fleet.Event) // takes a line for the log
	Leaving() bool    // it ends, or has ended; Mu is held
}

// turn is a runtime's own, around a Turn.
type turn interface {
	comparable
	Base() *Turn
}

// Ways are what a runtime does for its agent in its own way.
type Ways struct {
	Retry  func() // as New has it
	Anew   func() // forgets at a restart what was learned, with Mu held; nil for nothing
	Greets bool   // as Keeper has it
	// Leave ends the prompt and leaves the process; nil for one that ends with that.
	Leave func(ctx context.Context, why Ending) error
}

// Open begins to report the agent's state, and has it closed at the end of life.
func (a *Agent[S, T]) Open(life context.Context, rec fleet.Agent, notify func(fleet.Health), ways Ways) {
	a.ways = ways
	a.Keep = New(life, &a.Mu, rec, notify, a.PID, ways.Retry)
	a.Keep.Greets = ways.Greets
	if a.Host == "" {
		a.Keep.Depends = func() (string, []string) { return a.Spec.Program(), a.Home.Logins() }
	}
	a.Mu.Lock()
	a.Keep.Check(a.Available())
	a.Mu.Unlock()
	if a.Host != "" {
		a.unfollow = a.Hosts.Follow(a.Spec.Whose.Tenant, a.Host, func(why error) { go a.linked(why) })
	}
	a.unhook = context.AfterFunc(life, func() { _ = a.Close() })
}

// run is its process, nil for none; Mu is held.
func (a *Agent[S, T]) run() *Run {
	var none S
	if a.Sess == none {
		return nil
	}
	return a.Sess.Base()
}

// Now is the turn that it works on, nil for none.
func (a *Agent[S, T]) Now() *Turn {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.busy()
}

func (a *Agent[S, T]) busy() *Turn {
	var none T
	if a.Turn == none {
		return nil
	}
	return a.Turn.Base()
}

// PID is the process that runs, 0 for none; Mu is held.
func (a *Agent[S, T]) PID() int {
	if r := a.run(); r != nil && !r.Proc.Ended() {
		return r.Proc.PID()
	}
	return 0
}

// Take makes a turn the one that it works on, unless it can't take that: then the turn is
// over.
func (a *Agent[S, T]) Take(t T) error {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if err := a.Keep.Takes(a.busy()); err != nil {
		t.Base().Cancel()
		return err
	}
	a.Turn = t
	return nil
}

// Launch starts its process, as Place.Start does; Mu is held.
func (a *Agent[S, T]) Launch(parent string, besides func(*cell.Spec, *secret.Mask) error) (*Run, error) {
	run := &Run{Over: make(chan struct{})}
	proc, said, err := a.Start(parent, func(spec *cell.Spec, mask *secret.Mask) error {
		run.Mask = mask
		return besides(spec, mask)
	})
	if err != nil {
		return nil, err
	}
	for _, e := range said {
		a.Backlog.Add(e)
	}
	a.Began(proc)
	run.Proc = proc
	return run, nil
}

// Began notes that its process has; Mu is held.
func (a *Agent[S, T]) Began(p Process) {
	if a.Crashed {
		a.Crashed = false
		a.Keep.Restarts++
	}
	a.Keep.Lacks = strings.Join(p.Missing(), ", ")
}

// ErrStopped says that a prompt ended before it began.
var ErrStopped = errors.New("ended before it began")

// Await calls ready, with Mu held, until it gives nothing to wait for; limit, unless it
// is nil, bounds that wait. Before, it waits while the agent is paused, and for a process
// that ends. It ends with the turn.
func (a *Agent[S, T]) Await(t *Turn, ready func() (wait <-chan struct{}, limit <-chan time.Time, err error)) error {
	for {
		var wait <-chan struct{}
		var limit <-chan time.Time
		var err error
		a.Mu.Lock()
		switch r := a.run(); {
		case a.Keep.IsClosed() || a.Keep.Stopped || t.Ending() != Running:
			err = ErrStopped
		case a.Keep.Paused() != nil:
			wait = a.Keep.Paused()
		case r != nil && a.Sess.Leaving():
			wait = r.Over
		default:
			wait, limit, err = ready()
		}
		a.Mu.Unlock()
		if wait == nil || err != nil {
			return err
		}
		select {
		case <-wait:
		case <-limit:
		case <-t.Stop:
			return ErrStopped
		case <-t.Context.Done():
			return ErrStopped
		case <-a.Keep.Closed():
			return ErrStopped
		}
	}
}

// Refused is the outcome of a turn that no process took: because it, or its agent, ended
// before, or else what other says of the error.
func (t *Turn) Refused(err error, other func(error) task.Outcome) (out task.Outcome) {
	switch {
	case t.Ending() != Running:
		out = t.OnPurpose(Failure("cancelled", "", false))
	case errors.Is(err, ErrStopped):
		out = Failure("agent_closed", "the agent was closed before the task began", true)
	default:
		out = other(err)
	}
	out.Unsent = true
	return out
}

// Left takes leave of a process that has ended with nothing left of it; Mu is held. Told
// says that somebody is to hear of it.
func (a *Agent[S, T]) Left(s S) (told bool) {
	var none S
	if a.Sess == s {
		a.Sess = none
	}
	if a.Keep.Stopped || a.Keep.IsClosed() {
		return false
	}
	if s.Base().Exit.Duration >= SoundAfter {
		a.Keep.Sound()
	}
	return true
}

// ToEnd reports whether the process of a turn that is to end ends with it: the agent is
// stopped, or paused, so that it can't be asked.
func (a *Agent[S, T]) ToEnd(s S, how Ending) bool {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	r := s.Base()
	r.Ending = r.Ending || a.Keep.Paused() != nil || how == ByStop || how == ByRestart
	return r.Ending
}

// linked is told that the link to its host is there, or why it is not.
func (a *Agent[S, T]) linked(why error) {
	a.Mu.Lock()
	var none S
	s := a.Sess
	if s == none && a.busy() == nil {
		a.Keep.Linked(why, a.Available)
	}
	a.Mu.Unlock()
	switch {
	case s == none:
	case why != nil:
		s.Hear(fleet.Event{Type: "log", Level: "WARN", Text: why.Error() + "; its process goes on there until the lease is over"})
	default:
		s.Hear(fleet.Event{Type: "log", Level: "INFO", Text: "the link to host " + a.Host + " is back"})
	}
}

func (a *Agent[S, T]) Interrupt() {
	if t := a.Now(); t != nil {
		t.End(ByCancel, ByCancel.String())
	}
}

// Pause implements fleet.Handle. An agent without a process is paused by being told:
// what is begun then waits for Resume.
func (a *Agent[S, T]) Pause(ctx context.Context) error {
	a.Mu.Lock()
	if a.Keep.IsClosed() {
		a.Mu.Unlock()
		return ErrClosed
	}
	a.Keep.Pause()
	r := a.run()
	a.Mu.Unlock()
	if r == nil {
		return nil
	}
	return r.UnlessOver(ctx, r.Proc.Pause(ctx))
}

func (a *Agent[S, T]) Resume(ctx context.Context) error {
	a.Mu.Lock()
	r := a.run()
	a.Mu.Unlock()
	if r != nil {
		if err := r.UnlessOver(ctx, r.Proc.Resume(ctx)); err != nil {
			return err
		}
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.Keep.Resume()
	return nil
}

// Stop implements fleet.Handle. Prompts are refused until Restart.
func (a *Agent[S, T]) Stop(ctx context.Context) error {
	return a.Keep.Stop(&a.Mu, func() error { return a.end(ctx, ByStop) })
}

// Restart implements fleet.Handle. The process runs again with the next prompt, as after
// Open.
func (a *Agent[S, T]) Restart(ctx context.Context) error {
	return a.Keep.Restart(&a.Mu, func() error { return a.end(ctx, ByRestart) }, func() error {
		if a.Crashed = false; a.ways.Anew != nil {
			a.ways.Anew()
		}
		return a.Available()
	})
}

func (a *Agent[S, T]) Close() error {
	a.Mu.Lock()
	a.Keep.Close()
	a.Mu.Unlock()
	a.unhook()
	if a.unfollow != nil {
		a.unfollow()
	}
	defer a.Lines.Close()
	return a.end(context.Background(), ByStop)
}

// end ends the prompt and the process, and waits until both are gone.
func (a *Agent[S, T]) end(ctx context.Context, why Ending) error {
	if a.ways.Leave != nil {
		return a.ways.Leave(ctx, why)
	}
	a.Mu.Lock()
	a.Keep.Quiet()
	r := a.run()
	if r != nil {
		r.Ending = true
	}
	if t := a.busy(); t != nil {
		t.End(why, why.String())
	}
	a.Mu.Unlock()
	if r == nil {
		return nil
	}
	return r.stopped(ctx, a.End)
}
