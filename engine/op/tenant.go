package op

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/health"
	"swarmdeck/engine/retention"
	"swarmdeck/engine/swarm"
)

func tenants() []*Op {
	return append([]*Op{
		tenantErase(),
		tenantCreate(),
		list(Op{Name: "tenant list", Short: "List the tenants", Alone: true},
			func(ctx context.Context, c *Call, f core.Filter) (core.Page[swarm.Tenant], error) {
				if err := c.Open(false); err != nil {
					return core.Page[swarm.Tenant]{}, err
				}
				all, err := c.Swarm.Tenants(ctx)
				if c.Remote {
					all = slices.DeleteFunc(slices.Clone(all), func(t swarm.Tenant) bool { return t.TenantID != c.By.Tenant })
				}
				return core.Pick(all, err, f, func(t swarm.Tenant) core.Traits { return core.Traits{At: t.CreatedAt, Text: t.TenantID} })
			}),
		tenantTroubles(),
		tenantShow(),
	}, append(retentions(), tenantSlots()...)...)
}

func tenantCreate() *Op {
	var id string
	return define(Op{
		Name: "tenant create", Short: "Make a tenant", Role: Admin, Alone: true, Done: "created",
		Params: []*Param{{Name: "id", About: "ID", Arg: true, Need: true, From: "tenant", Into: &id, Valid: func() error { return core.CheckTenant(id) }}},
	}, func(ctx context.Context, c *Call) (swarm.Tenant, error) {
		if err := c.Open(false); err != nil {
			return swarm.Tenant{}, err
		}
		by := c.By
		by.Tenant = id
		return c.Swarm.CreateTenant(ctx, by, id)
	})
}

func tenantTroubles() *Op {
	return list(Op{
		Name: "tenant troubles", Short: "List what is wrong inside: records that can't be read, work that fails again and again", Alone: true,
		Long: "List what is wrong with each tenant, and with the whole engine. A tenant with a trouble is degraded: what the\n" +
			"trouble names is left out, all else of it goes on, and so do the other tenants.",
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[health.Trouble], error) {
		err := c.Open(false)
		if err == nil {
			err = c.Inspect(ctx)
		}
		if err != nil {
			return core.Page[health.Trouble]{}, err
		}
		all := c.Health.All()
		if c.Remote {
			all = c.Health.Of(c.By.Tenant)
		}
		return core.Pick(all, nil, f, func(one health.Trouble) core.Traits {
			return core.Traits{At: one.Since, Text: one.Tenant + " " + one.String()}
		})
	})
}

// ShownTenant is a tenant with what is wrong with it.
type ShownTenant struct {
	swarm.Tenant
	Troubles []health.Trouble `json:"troubles,omitempty"`
}

func tenantShow() *Op {
	var id string
	return define(Op{
		Name: "tenant show", Short: "Show a tenant", Effect: Reads,
		Params: []*Param{maybe(&id, "ID", "tenant")},
	}, func(ctx context.Context, c *Call) (ShownTenant, error) {
		found, err := c.Swarm.Tenant(ctx, c.By.Tenant) // which is the one that was named
		return ShownTenant{found, c.Health.Of(c.By.Tenant)}, err
	})
}

// erased tells what an erasure came to.
func erased(e retention.Erased) Told[retention.Erased] {
	some := core.Map(slices.Sorted(maps.Keys(e.Erased)), func(kind string) string { return fmt.Sprintf("%d %s", e.Erased[kind], kind) })
	if len(some) == 0 {
		some = []string{"nothing"}
	}
	lines := []string{"erased of " + e.Subject + ": " + strings.Join(some, ", ")}
	for _, left := range e.Left {
		lines = append(lines, "left: "+left)
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("left: %d more", e.More))
	}
	return told(e, strings.Join(append(lines, e.Next), "\n"))
}

func tenantErase() *Op {
	var subject string
	var yes bool
	return define(Op{
		Name: "tenant erase", Short: "Erase what a person or agent said, and leave the digests", Effect: Destroys, Role: Admin, Confirm: ConfirmType, Done: "erased",
		Long: "Erase the content of a person or agent: of the tasks that they asked for, and of those that were run for these, the input,\n" +
			"title, output, errors, logs and files; their messages; the parameters and results of skills; what approvals showed, and the\n" +
			"reasons that they gave; what the record holds of it. SUBJECT is a name of an operator or agent, or who a person is to the\n" +
			"door: uid:1000, or a key's SHA256:…. In place of the content stand its SHA-256 and size. Who did what, and when, stays in\n" +
			"the audit log. What is not over is left and named: end it, and erase again. An erasure that was ended is finished by\n" +
			"another. The free space of the data file holds what was there until store compact.",
		Example: "tenant erase alice --yes\ntenant erase uid:1000 --yes",
		Params:  []*Param{place(&subject, "SUBJECT", "party"), sure(&yes)},
		Check: func(*Call) error {
			if !yes {
				return usage("yes", "tenant erase: this can't be undone; say --yes to erase what %q said", core.Clip(subject))
			}
			return nil
		},
	}, func(ctx context.Context, c *Call) (Told[retention.Erased], error) {
		done, err := c.Retention.Erase(ctx, c.By, subject)
		return erased(done), err
	})
}

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

func estops() []*Op {
	press := func(o Op, do func(ctx context.Context, c *Call, reason string) (estop.State, error)) *Op {
		var reason string
		o.Params = []*Param{why(&reason)}
		o.Params[0].Need = true
		return define(o, func(ctx context.Context, c *Call) (estop.State, error) { return do(ctx, c, reason) })
	}
	return []*Op{
		// Stopping is reversible and must be one step: no confirmation.
		press(Op{
			Name: "estop on", Short: "Freeze every agent and claim at once", Example: "estop on --reason 'it deletes files'",
			Undo: "estop off", Done: "pressed",
		}, byCaller(func(c *Call) callerAct[string, estop.State] { return c.Swarm.EStops.Press })),
		press(Op{Name: "estop off", Short: "Thaw what the emergency stop froze", Confirm: ConfirmAsk, Done: "released"},
			byCaller(func(c *Call) callerAct[string, estop.State] { return c.Swarm.EStops.Thaw })),
		define(Op{Name: "estop show", Short: "Show the emergency stop and who has not acknowledged", Effect: Reads},
			func(_ context.Context, c *Call) (estop.State, error) { return c.Swarm.EStops.State(c.By.Tenant), nil }),
	}
}
