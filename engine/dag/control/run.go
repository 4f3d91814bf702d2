package control

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/store"
)

// Timing of Run.
const (
	tendAgain  = time.Minute // when a tenant could not be tended
	longest    = time.Minute // what Run waits at most: timers stand while the machine sleeps
	takeAtOnce = 64          // intents that one transaction leases
)

func get(k []byte) uint64 { return binary.BigEndian.Uint64(k) }

// Run carries intents out until ctx ends, and waits for what it began.
func (c *Controller) Run(ctx context.Context) error {
	tenants, err := c.opt.Tenants(ctx)
	if err != nil {
		return fmt.Errorf("list the tenants: %w", err)
	}
	err = c.opt.Health.Tenants(ctx, "intents", tenants, func(t string) error {
		defer c.bell.due(t, time.Time{})
		return c.adopt(ctx, t)
	})
	if err != nil {
		return fmt.Errorf("look for intents that were cut off: %w", err)
	}
	var working sync.WaitGroup
	defer working.Wait()
	timer := time.NewTimer(longest)
	defer timer.Stop()
	for {
		due, wait := c.bell.take(c.ledger.Clock().Now())
		for _, tenant := range due {
			more, err := c.tend(ctx, tenant, func(h *held, ctx context.Context) {
				working.Go(func() { c.carry(ctx, h) })
			})
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("tend the intents of %s: %w", tenant, err)
			}
			if more {
				wait = 0
			}
		}
		if wait == 0 && ctx.Err() == nil {
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.bell.rung:
		case <-timer.C:
		}
	}
}

// tending is what a pass of Run is called among troubles: what it found at its
// start stays named.
const tending = "leases"

// tend leases what is due of a tenant, as far as there are slots, and has it
// carried out. more says that more is due and can be taken at once.
func (c *Controller) tend(ctx context.Context, tenant string, begin func(*held, context.Context)) (more bool, err error) {
	err = health.Caught(func() error {
		more, err = c.lease(ctx, tenant, begin)
		return err
	})
	switch {
	case err == nil:
		c.opt.Health.Clear(tenant, "intents", tending)
		return more, nil
	case ctx.Err() != nil:
		return more, nil
	case errors.Is(err, store.ErrNoTenant):
		return false, nil
	case health.WholeEngine(err):
		return false, err
	}
	c.opt.Health.Report(tenant, "intents", tending, err)
	// Trouble with one tenant's records must not keep the others waiting. The
	// cause comes back when it can't be audited either.
	c.bell.due(tenant, c.ledger.Clock().Now().Add(tendAgain))
	_ = c.ledger.Refuse(ctx, core.Self(tenant, component), audit.Entry{Type: "intent.trouble", Subject: "intents", ID: tenant}, err)
	return false, nil
}

func (c *Controller) lease(ctx context.Context, tenant string, begin func(*held, context.Context)) (more bool, err error) {
	if c.halted(tenant) {
		return false, nil // Thaw rings
	}
	free := c.free()
	if free <= 0 {
		// Who ends rings for those who wait: what ended before this one did is
		// seen by looking again.
		c.bell.due(tenant, c.ledger.Clock().Now().Add(longest))
		if free = c.free(); free <= 0 {
			return false, nil
		}
	}
	mine := c.heldOf(tenant)
	var ready []uint64
	var next time.Time
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		now := tx.Now()
		return tx.Scan(bDue, nil, nil, false, func(k, _ []byte) bool {
			if slices.Contains(mine, get(k[8:])) {
				return true // it has not come back, whatever became of its lease; release rings
			}
			next = time.UnixMicro(int64(get(k)))
			if next.After(now) || len(ready) == free {
				return false
			}
			ready = append(ready, get(k[8:]))
			next = time.Time{}
			return true
		})
	})
	if err != nil {
		return false, err
	}
	if !next.IsZero() {
		defer c.bell.due(tenant, next)
	}
	if len(ready) == 0 {
		return false, nil
	}
	type begun struct {
		h   *held
		ctx context.Context
	}
	var taken []begun
	err = c.ledger.Append(ctx, core.Self(tenant, component), func(tx *audit.Tx) error {
		for _, seq := range ready {
			h, err := c.take(tx, seq)
			if err != nil {
				return err
			}
			if h != nil {
				// With the commit: whoever withdraws it after that finds its holder.
				tx.OnCommit(func() { taken = append(taken, begun{h, c.hold(ctx, h)}) })
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, b := range taken {
		begin(b.h, b.ctx)
	}
	return len(ready) == free, nil
}

// free is how many intents may be leased now.
func (c *Controller) free() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(c.opt.Slots-len(c.holding), takeAtOnce)
}

// heldOf lists what work goes on here for of a tenant. Only Run adds to it.
func (c *Controller) heldOf(tenant string) (seqs []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, h := range c.holding {
		if at.tenant == tenant {
			seqs = append(seqs, h.seq)
		}
	}
	return seqs
}

// hold notes that work goes on here; its context ends with the lease.
func (c *Controller) hold(ctx context.Context, h *held) context.Context {
	ctx, h.stop = context.WithCancelCause(ctx)
	c.mu.Lock()
	c.holding[h.place] = h
	frozen := c.frozen[h.tenant]
	c.mu.Unlock()
	if frozen {
		h.stop(errFrozen)
	}
	return ctx
}

// release is the end of hold: there is a slot again.
func (c *Controller) release(h *held) {
	h.stop(nil)
	c.mu.Lock()
	delete(c.holding, h.place)
	full := len(c.holding) == c.opt.Slots-1
	c.mu.Unlock()
	c.bell.due(h.tenant, time.Time{})
	if full {
		c.bell.all() // others may have waited for a slot
	}
}

// bell says which tenants Run looks at, and when.
type bell struct {
	rung chan struct{}

	mu sync.Mutex
	at map[string]time.Time
}

func (b *bell) init() { b.rung, b.at = make(chan struct{}, 1), map[string]time.Time{} }

// due has a tenant looked at from a time on.
func (b *bell) due(tenant string, at time.Time) {
	b.mu.Lock()
	known, ok := b.at[tenant]
	sooner := !ok || at.Before(known)
	if sooner {
		b.at[tenant] = at
	}
	b.mu.Unlock()
	if sooner {
		b.ring()
	}
}

// all has every tenant looked at that is known to have something.
func (b *bell) all() {
	b.mu.Lock()
	for t := range b.at {
		b.at[t] = time.Time{}
	}
	b.mu.Unlock()
	b.ring()
}

func (b *bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// take returns the tenants that are due, and how long to wait when none is.
func (b *bell) take(now time.Time) (due []string, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait = longest
	for t, at := range b.at {
		if left := at.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		due = append(due, t)
		delete(b.at, t)
	}
	return due, wait
}
