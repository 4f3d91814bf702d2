package control

import (
	"context"
	"slices"
	"time"

	"swarmdeck/engine/estop"
)

// Controller obeys the emergency stop.
var _ estop.Freezer = (*Controller)(nil)

// Freeze implements estop.Freezer: what is being done is cut off, which is no
// try, and nothing begins before Thaw. The answer names the intents whose
// effects did not return in time.
func (c *Controller) Freeze(ctx context.Context, tenant string) []string {
	c.mu.Lock()
	c.frozen[tenant] = true
	c.mu.Unlock()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		busy := c.cutOff(tenant)
		if len(busy) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return busy
		case <-look.C:
		}
	}
}

// cutOff ends the work of a tenant and lists what has not come to rest.
func (c *Controller) cutOff(tenant string) (busy []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, h := range c.holding {
		if at.tenant == tenant {
			h.stop(errFrozen)
			busy = append(busy, at.id)
		}
	}
	slices.Sort(busy)
	return busy
}

func (c *Controller) Thaw(_ context.Context, tenant string) {
	c.mu.Lock()
	delete(c.frozen, tenant)
	c.mu.Unlock()
	c.loop.Ring(tenant)
}

// halted reports a tenant of which nothing may begin.
func (c *Controller) halted(tenant string) bool {
	c.mu.Lock()
	frozen := c.frozen[tenant]
	c.mu.Unlock()
	return frozen || c.opt.Halted != nil && c.opt.Halted(tenant)
}
