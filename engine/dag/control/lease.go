package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
)

// held is an intent that this controller has a lease on.
type held struct {
	place
	seq    uint64
	fence  uint64
	intent Intent // as it was when the lease began
	gate   bool   // it is to be judged, not carried out
	// spent says that all tries began and none was heard of again: there is one
	// more look, and no Act.
	spent bool
	stop  context.CancelCauseFunc // ends what is done under the lease
}

// Why work under a lease ends early.
var (
	errLost      = core.Errorf(core.Conflict, "the lease is lost")
	errWithdrawn = core.Errorf(core.Conflict, "the intent was withdrawn")
	errFrozen    = core.Errorf(core.Conflict, "the emergency stop is on")
)

// take leases an intent that is due; nil when it is not, or is another's.
func (c *Controller) take(tx *audit.Tx, seq uint64) (*held, error) {
	f, err := c.open(tx, seq)
	if err != nil {
		return nil, err
	}
	now := tx.Now()
	if f.desk.Due == 0 || time.UnixMicro(f.desk.Due).After(now) {
		return nil, nil
	}
	if l := f.desk.Lease; l != nil {
		if l.Epoch == tx.Epoch() && l.Until.After(now) {
			f.look(l.Until)
			return nil, f.putDesk()
		}
		f.lost(tx.Epoch())
	}
	switch {
	case f.Status.Over() || f.Status == Stuck:
		f.look(time.Time{})
		return nil, f.putDesk()
	case f.Status == Waiting && f.Approval != "":
		return nil, f.lookAfter()
	case f.Status == Waiting:
		return f.lease(true)
	}
	if f.Withdrawn && f.Status == Open { // its holder was to end it, and did not
		f.cutShort()
		return nil, f.takeBack("withdrawn", nil)
	}
	if ok, err := f.mayBegin(); err != nil || !ok {
		return nil, err
	}
	return f.lease(false)
}

// mayBegin reports whether it is this intent's turn, and its approval stands.
func (f *file) mayBegin() (bool, error) {
	if f.Turn > 0 {
		whose, err := first(f.tx, f.Subject)
		if err != nil {
			return false, err
		}
		if whose != f.seq {
			f.look(time.Time{}) // who ends before it gives it its turn
			return false, f.putDesk()
		}
	}
	if f.Approval == "" || f.Used {
		return true, nil
	}
	return f.useApproval()
}

// lost notes that a holder died, or was silent too long.
func (f *file) lost(epoch uint64) {
	l := f.desk.Lease
	f.desk.Lease = nil
	reason, why := dag.ReasonTimeout, "was silent too long"
	if l.Epoch != epoch {
		reason, why = dag.ReasonCrash, "died"
	}
	if f.Status == Open { // one that is undone keeps saying why
		f.Why = fmt.Sprintf("%s %s while it worked on this", l.Owner, why)
	}
	if f.Status == Open || f.Status == Undoing {
		f.emit(&dag.Interruption{Reason: reason, Affects: []dag.EventRef{f.call()}})
	}
}

// call is the event of the call at hand.
func (f *file) call() dag.EventRef {
	if f.Status == Undoing {
		return dag.EventRef{EventID: f.step().Undo}
	}
	return dag.EventRef{EventID: f.step().Call}
}

// lease gives the intent to this controller. That a step begins is on disk
// before it does.
func (f *file) lease(gate bool) (*held, error) {
	h := &held{place: place{f.tx.Tenant(), f.IntentID}, seq: f.seq, gate: gate}
	what := "judged"
	if !gate {
		what = "begun"
		if h.spent = f.Tries >= f.attempts(); !h.spent {
			f.Tries++
		}
		_, known := f.c.kinds[f.step().Action]
		switch {
		case f.Status == Undoing:
			what = "undoing"
		case known:
			f.step().Status, f.step().Tries = StepStarted, f.Tries
		}
	}
	f.Fence++
	h.fence = f.Fence
	f.desk.Lease = &Lease{Owner: f.c.opt.Owner, Epoch: f.tx.Epoch(), Fence: f.Fence, Until: f.tx.Now().Add(f.c.opt.Lease)}
	f.look(f.desk.Lease.Until)
	if err := f.save(what, map[string]any{"owner": f.c.opt.Owner, "fence": f.Fence, "step": f.At, "try": f.Tries}); err != nil {
		return nil, err
	}
	h.intent = f.Intent
	h.intent.Steps = append([]StepState(nil), f.Steps...)
	return h, nil
}

// attempts is how often the step at hand is tried. Taking back has twice as
// many tries, and ten at least: what is left half undone needs a person.
func (f *file) attempts() int {
	n := defaultAttempts
	if k, known := f.c.kinds[f.step().Action]; known {
		n = k.Attempts
	}
	if f.Status == Undoing {
		return max(2*n, 10)
	}
	return n
}

// keep renews the lease until ctx ends, and ends the work when the lease is
// another's or the intent was withdrawn.
func (c *Controller) keep(ctx context.Context, h *held) {
	tick := time.NewTicker(c.opt.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var over error
		err := c.ledger.Append(ctx, core.Self(h.tenant, component), func(tx *audit.Tx) error {
			f, err := c.open(tx, h.seq)
			if err != nil {
				return err
			}
			if f.Withdrawn && f.Status == Open {
				over = errWithdrawn
			}
			if f.desk.Lease == nil || f.desk.Lease.Fence != h.fence {
				over = errLost
				return nil
			}
			f.desk.Lease.Until = tx.Now().Add(c.opt.Lease)
			f.look(f.desk.Lease.Until)
			return f.putDesk()
		})
		if err == nil && over != nil {
			h.stop(over)
			return
		}
		// A store that can't be written is not this one's to tell: the end of the
		// work finds out whether the lease still stands.
	}
}

// adopt has the intents of dead owners looked at now. It is done once, before
// anything of the tenant is carried out.
func (c *Controller) adopt(ctx context.Context, tenant string) error {
	var orphans []uint64
	err := c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return c.intents.Along(tx, bOpen, open, func(i *Intent) error {
			_, _, seq, _ := core.ParseID(i.IntentID)
			switch d, _, err := desks.Get(tx, record.Seq(seq)); {
			case len(core.DamagedIn(err)) > 0:
				c.opt.Health.Report(tenant, "intents", "", err)
			case err != nil:
				return err
			case d.Lease != nil && d.Lease.Epoch != tx.Epoch():
				orphans = append(orphans, seq)
			}
			return nil
		})
	})
	if len(core.DamagedIn(err)) > 0 { // nobody carries those on
		c.opt.Health.Report(tenant, "intents", "", err)
	} else if err != nil {
		return err
	}
	for some := range slices.Chunk(orphans, adoptAtOnce) {
		err := c.ledger.Append(ctx, core.Self(tenant, component), func(tx *audit.Tx) error {
			for _, seq := range some {
				if err := c.poke(tx, seq); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// adoptAtOnce is how many intents one transaction gives to whoever is here now.
const adoptAtOnce = 1000

// component names the controller as a caller.
const component = "controller"
