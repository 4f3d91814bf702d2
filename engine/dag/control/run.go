package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/store"
)

// run is the work on one intent: a goroutine, from when the intent is made or
// Run begins until it is over or stuck.
type run struct {
	place
	bell chan struct{}           // one slot: something changed
	stop context.CancelCauseFunc // of what is being done; nil while nothing is
}

// todo is what there is to do for an intent.
type todo struct {
	try   *Intent   // its step at hand: that it begins is on disk
	spent bool      // all tries of that ended with who made them: it is looked at once more
	judge bool      // it has to be judged
	over  bool      // nothing, until somebody retries it
	next  time.Time // else: when to look again; zero is when something changes
}

const (
	slots    = 8           // intents that are worked on at once
	mostWait = time.Minute // timers stand while the machine sleeps
)

// Why what is done for an intent ends early.
var (
	errWithdrawn = core.Errorf(core.Conflict, "the intent was withdrawn")
	errFrozen    = core.Errorf(core.Conflict, "the emergency stop is on")
)

// component names the controller as a caller.
const component = "controller"

// Run carries intents out until ctx ends, and waits for what it began.
func (c *Controller) Run(ctx context.Context) error {
	tenants, err := c.opt.Tenants(ctx)
	if err != nil {
		return fmt.Errorf("list the tenants: %w", err)
	}
	defer c.working.Wait()
	ctx, stop := context.WithCancel(ctx)
	c.mu.Lock()
	c.base = ctx
	c.mu.Unlock()
	defer func() { // under the lock: nothing begins after it
		c.mu.Lock()
		defer c.mu.Unlock()
		stop()
	}()
	if err := c.opt.Health.Tenants(ctx, "intents", tenants, func(t string) error { return c.recall(ctx, t) }); err != nil {
		return fmt.Errorf("find the intents that are open: %w", err)
	}
	<-ctx.Done()
	return nil
}

// recall has the work on all intents of a tenant go on that are not over.
func (c *Controller) recall(ctx context.Context, tenant string) error {
	err := c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return c.intents.Along(tx, bOpen, open, func(i *Intent) error {
			c.wake(place{tenant, i.IntentID})
			return nil
		})
	})
	if len(core.DamagedIn(err)) > 0 { // nobody carries those on
		c.opt.Health.Report(tenant, "intents", "", err)
		return nil
	}
	return err
}

// wake has the work on an intent look at it again, or begins it.
func (c *Controller) wake(at place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.runs[at]; r != nil {
		loop.Ring(r.bell)
		return
	}
	if c.base == nil || c.base.Err() != nil {
		return // Run finds it
	}
	ctx, r := c.base, &run{place: at, bell: make(chan struct{}, 1)}
	c.runs[at] = r
	c.working.Go(func() { c.carry(ctx, r) })
}

// carry works on an intent until there is nothing left to do.
func (c *Controller) carry(ctx context.Context, r *run) {
	defer c.forget(r)
	for failed := 0; ctx.Err() == nil; {
		var do todo
		err := health.Caught(func() (err error) {
			do, err = c.pass(ctx, r)
			return err
		})
		switch {
		case errors.Is(err, store.ErrNoTenant):
			return // its tenant is another engine's
		case err == nil:
			failed = 0
		case ctx.Err() == nil: // what came of a try may not be on disk: it is looked at again
			c.opt.Health.Report(r.tenant, "intents", r.id, err)
			do = todo{next: c.ledger.Clock().Now().Add(core.Backoff(failed, time.Second, mostWait))}
			failed++
		}
		if do.over {
			return
		}
		wait := time.Duration(-1)
		if !do.next.IsZero() {
			wait = max(0, min(mostWait, do.next.Sub(c.ledger.Clock().Now())))
		}
		loop.Wait(ctx, r.bell, wait)
	}
}

// forget is the end of the work on an intent, unless that changed meanwhile.
func (c *Controller) forget(r *run) {
	c.mu.Lock()
	delete(c.runs, r.place)
	c.mu.Unlock()
	if len(r.bell) > 0 {
		c.wake(r.place)
	}
}

// pass does what there is to do for an intent now, once there is a slot.
func (c *Controller) pass(ctx context.Context, r *run) (do todo, err error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return do, context.Cause(ctx)
	}
	defer func() { <-c.slots }()
	work, ok := c.enter(ctx, r)
	if !ok {
		return do, nil // Thaw wakes it
	}
	defer c.rest(r)
	err = c.ledger.Append(ctx, core.Self(r.tenant, component), func(tx *audit.Tx) error {
		f, err := c.open(tx, r.id)
		if err == nil {
			do, err = f.todo()
		}
		return err
	})
	if err == nil && do.judge {
		return todo{next: c.ledger.Clock().Now()}, c.judged(ctx, r.place)
	}
	for err == nil && do.try != nil {
		do, err = c.settle(work, do, c.try(work, do))
	}
	return do, err
}

// enter notes that something is done for an intent, which the context that it
// returns ends in time; false while nothing may begin.
func (c *Controller) enter(ctx context.Context, r *run) (context.Context, bool) {
	halted := c.opt.Halted != nil && c.opt.Halted(r.tenant)
	c.mu.Lock()
	defer c.mu.Unlock()
	if halted || c.frozen[r.tenant] {
		return nil, false
	}
	ctx, r.stop = context.WithCancelCause(ctx)
	return ctx, true
}

// rest is the end of enter.
func (c *Controller) rest(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.stop(nil)
	r.stop = nil
}

// cutOff ends what is being done for some intents, and lists those that have not
// come to rest.
func (c *Controller) cutOff(why error, which func(place) bool) (busy []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, r := range c.runs {
		if which(at) && r.stop != nil {
			r.stop(why)
			busy = append(busy, at.id)
		}
	}
	slices.Sort(busy)
	return busy
}

// Controller obeys the emergency stop.
var _ estop.Freezer = (*Controller)(nil)

// Freeze implements estop.Freezer: what is being done is cut off, which is no
// try, and nothing begins before Thaw. The answer names the intents whose
// effects did not return in time.
func (c *Controller) Freeze(ctx context.Context, tenant string) []string {
	c.mu.Lock()
	c.frozen[tenant] = true
	c.mu.Unlock()
	for {
		busy := c.cutOff(errFrozen, func(at place) bool { return at.tenant == tenant })
		if len(busy) == 0 || core.Within(ctx.Done(), 5*time.Millisecond) {
			return busy
		}
	}
}

func (c *Controller) Thaw(_ context.Context, tenant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.frozen, tenant)
	for at, r := range c.runs {
		if at.tenant == tenant {
			loop.Ring(r.bell)
		}
	}
}

// todo brings an intent to where the work on it goes on, and says what is next.
func (f *file) todo() (todo, error) {
	if f.Epoch != 0 {
		f.lost()
	}
	again := func(err error) (todo, error) {
		if err != nil {
			return todo{}, err
		}
		return f.todo()
	}
	switch {
	case f.Status.Over() || f.Status == Stuck:
		return todo{over: true}, nil
	case f.Status == Waiting && f.Approval == "":
		return todo{judge: true}, nil
	case f.Status == Waiting:
		return f.lookAfter()
	case f.Withdrawn && f.Status == Open: // who worked on it was to end it, and did not
		f.cutShort()
		return again(f.takeBack("withdrawn", nil))
	case f.NextAt.After(f.tx.Now()):
		return todo{next: f.NextAt}, nil
	case f.Turn > 0:
		whose, err := first(f.tx, f.Subject)
		if err != nil || whose != f.IntentID {
			return todo{}, err // who ends before it wakes it
		}
	}
	if _, known := f.c.kinds[f.step().Action]; !known {
		f.Why, f.NextAt = "nothing here carries out "+f.step().Action, f.tx.Now().Add(absentFor)
		return todo{next: f.NextAt}, f.save("waits", map[string]any{"step": f.At, "why": f.Why})
	}
	if f.Approval != "" && !f.Used {
		if stands, err := f.useApproval(); err != nil || !stands {
			return again(err)
		}
	}
	return f.begin()
}

// lost notes that nobody knows what came of the last try: who made it died, or
// could not record it.
func (f *file) lost() {
	f.Epoch = 0
	if f.Status == Open { // one that is undone keeps saying why
		f.Why = "the work on this was cut off"
	}
	f.emit(&dag.Interruption{Reason: dag.ReasonCrash, Affects: []dag.EventRef{f.call()}})
}

// call is the event of the call at hand.
func (f *file) call() dag.EventRef {
	if f.Status == Undoing {
		return dag.EventRef{EventID: f.step().Undo}
	}
	return dag.EventRef{EventID: f.step().Call}
}

// begin has the step at hand tried. That it begins is on disk before it does.
func (f *file) begin() (todo, error) {
	do := todo{spent: f.Tries >= f.attempts()}
	if !do.spent {
		f.Tries++
	}
	what := "undoing"
	if f.Status == Open {
		what = "begun"
		f.step().Status, f.step().Tries = StepStarted, f.Tries
	}
	f.Epoch, f.NextAt = f.tx.Epoch(), time.Time{}
	err := f.save(what, map[string]any{"step": f.At, "try": f.Tries})
	do.try = f.was
	return do, err
}

// attempts is how often the step at hand is tried. Taking back has twice as
// many tries, and ten at least: what is left half undone needs a person.
func (f *file) attempts() int {
	n := f.c.kinds[f.step().Action].Attempts
	if f.Status == Undoing {
		return max(2*n, 10)
	}
	return n
}
