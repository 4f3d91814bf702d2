package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

const (
	lookAgain  = time.Minute // while there is no slot
	takeAtOnce = 64          // intents that one transaction leases
)

// Run carries intents out until ctx ends, and waits for what it began.
func (c *Controller) Run(ctx context.Context) error {
	tenants, err := c.opt.Tenants(ctx)
	if err != nil {
		return fmt.Errorf("list the tenants: %w", err)
	}
	err = c.opt.Health.Tenants(ctx, "intents", tenants, func(t string) error {
		defer c.loop.Ring(t)
		return c.adopt(ctx, t)
	})
	if err != nil {
		return fmt.Errorf("look for intents that were cut off: %w", err)
	}
	defer c.working.Wait()
	return c.loop.Run(ctx)
}

// tend leases what is due of a tenant, as far as there are slots, and begins it.
func (c *Controller) tend(ctx context.Context, tenant string, _ bool) (next time.Time, err error) {
	if c.halted(tenant) {
		return next, nil // Thaw rings
	}
	free := c.free()
	if free <= 0 {
		// Who ends rings for those who wait: what ended before this one did is
		// seen by looking again.
		c.loop.Due(tenant, c.ledger.Clock().Now().Add(lookAgain))
		if free = c.free(); free <= 0 {
			return next, nil
		}
	}
	mine := c.heldOf(tenant)
	var ready []uint64
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		now := tx.Now()
		return dues.Each(tx, nil, func(k record.Parts, _ struct{}) (bool, error) {
			due, seq := k.Time(), k.Seq()
			if slices.Contains(mine, seq) {
				return true, nil // it has not come back, whatever became of its lease; release rings
			}
			if due.After(now) || len(ready) == free {
				next = due
				return false, nil
			}
			ready = append(ready, seq)
			return true, nil
		})
	})
	if err != nil || len(ready) == 0 {
		return next, err
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
		return next, err
	}
	for _, b := range taken {
		c.begin(b.h, b.ctx)
	}
	return next, nil
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
	c.loop.Ring(h.tenant)
	if full {
		c.loop.All() // others may have waited for a slot
	}
}
