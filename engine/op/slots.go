package op

import (
	"context"

	"swarmdeck/engine/swarm"
)

func tenantSlots() []*Op {
	var n int
	count := &Param{Name: "slots", About: "run at most `N` at once, 1-10000", Need: true, Into: &n}
	return []*Op{
		define(Op{Name: "tenant slots show", Short: "Show how many tasks run at once", Effect: Reads, Full: true},
			func(_ context.Context, c *Call) (swarm.Slots, error) { return c.Swarm.SlotsOf(c.By.Tenant), nil }),
		define(Op{
			Name: "tenant slots set", Short: "Have so many tasks run at once", Role: Admin, Undo: "tenant slots delete", Done: "set",
			Long: "Give the tenant slots of its own: so many tasks run at once that go to no agent. It holds at once; what runs goes on.\n" +
				"Tenants without slots of their own share those of the engine: serve --slots N, or SWARMDECK_SLOTS, 8 unless said.",
			Example: "tenant slots set --slots 16",
			Params:  []*Param{count},
			Check:   func(*Call) error { return swarm.CheckSlots("slots", n) },
		}, func(ctx context.Context, c *Call) (swarm.Slots, error) {
			set, _, err := c.Swarm.SetSlots(ctx, c.By, n)
			return set, err
		}),
		define(Op{Name: "tenant slots delete", Short: "Share the engine's slots again", Role: Admin, Done: "deleted"},
			func(ctx context.Context, c *Call) (swarm.Slots, error) { return c.Swarm.ShareSlots(ctx, c.By) }),
	}
}
