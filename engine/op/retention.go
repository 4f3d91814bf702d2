package op

import (
	"context"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/retention"
)

func retentions() []*Op {
	return []*Op{
		retentionSet(),
		picked(Op{Name: "tenant retention list", Short: "List what leaves, and when"},
			func(c *Call) tenantList[retention.Policy] { return c.Retention.List },
			func(_ *Call, p retention.Policy) core.Traits {
				return core.Traits{At: p.CreatedAt, Kind: p.Kind, Text: p.Kind + " " + p.Export}
			}),
		define(Op{
			Name: "tenant retention apply", Short: "Let what is too old leave now, not in some seconds",
			Effect: Destroys, Role: Admin, Confirm: ConfirmAsk, Done: "applied",
		}, func(ctx context.Context, c *Call) (Applied, error) {
			some, err := c.Retention.Apply(ctx, c.By.Tenant)
			return Applied{some}, err
		}),
		change(Op{Name: "tenant retention delete", Short: "Keep everything of a kind from now on", Role: Admin, Done: "deleted"}, arg("KIND", "retention"),
			byCaller(func(c *Call) callerAct[string, retention.Policy] { return c.Retention.Delete })),
	}
}

// Applied says whether anything left.
type Applied struct {
	Left bool `json:"left"`
}

func retentionSet() *Op {
	var p retention.Policy
	var age time.Duration
	var mib int64
	return define(Op{
		Request: &p,
		Name:    "tenant retention set", Short: "Let old things of a kind leave, by age or number", Done: "set",
		Effect: Destroys, Role: Admin, Confirm: ConfirmAsk, Undo: "tenant retention delete",
		Long: "Let things of a kind leave once they ended longer than --age ago, or once there are more than --count: " + strings.Join(retention.Kinds(), ", ") + ".\n" +
			"What runs, waits or is open stays, and so does what that needs. Each slice that leaves is an event of the audit log, so that\n" +
			"audit reconcile knows it from what somebody removed. Audit events leave as sealed pieces, after they were written to the\n" +
			"directory --export; the rest of the log, and every checkpoint that was given out, still verifies.",
		Example: "tenant retention set tasks --age 30d --count 100000\ntenant retention set audit --age 365d --export /srv/audit",
		Params: []*Param{
			place(&p.Kind, "KIND", "retention"),
			within(&mib, "mib", "of the log of each agent the newest `N` MiB stay (default 64); older lines leave as it grows, and its first line says how many", 1, 1<<20, "1-1048576"),
			flag(&age, "age", "what ended longer than this `TIME` ago leaves").fills(&p.AgeS),
			flag(&p.Count, "count", "how many of the newest stay; for logs, lines of each"),
			flag(&p.Export, "export", "`DIR` that audit events are written to before they leave").names(reach.Path),
		},
		Check: func(c *Call) error {
			p.AgeS = core.Seconds(age)
			p.Bytes = mib << 20
			if p.Export != "" {
				if err := c.Place(&p.Export); err != nil {
					return err
				}
			}
			return p.Check()
		},
	}, func(ctx context.Context, c *Call) (retention.Policy, error) {
		kept, _, err := c.Retention.Set(ctx, c.By, p)
		return kept, err
	})
}
