package cad

import (
	"context"
	"time"

	"swarmdeck/engine/estop"
)

var _ estop.Freezer = (*Controller)(nil)

// freezeLook is how often Freeze looks whether operations have ended.
const freezeLook = 10 * time.Millisecond

// Freeze implements estop.Freezer. Nothing that changes something begins under
// an emergency stop (the controller asks the swarm each time); what is under way
// is waited for, and what does not end in time is named.
func (c *Controller) Freeze(ctx context.Context, tenant string) []string {
	tick := time.NewTicker(freezeLook)
	defer tick.Stop()
	for {
		busy := c.changing(tenant)
		if len(busy) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return busy
		}
	}
}

// Thaw implements estop.Freezer.
func (c *Controller) Thaw(context.Context, string) {}

// changing are the agents whose operation under way may change something.
func (c *Controller) changing(tenant string) (busy []string) {
	for _, m := range c.members(tenant) {
		if now := m.now.Load(); now != nil {
			if of, known := FindMethod(now.method); !known || of.Effect != Reads {
				busy = append(busy, m.id)
			}
		}
	}
	return busy
}
