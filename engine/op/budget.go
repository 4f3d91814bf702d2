package op

import (
	"context"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
)

func budgets() []*Op {
	return []*Op{
		budgetSet(),
		picked(Op{Name: "budget list", Short: "List the budgets and what is used of them"},
			func(c *Call) tenantList[budget.Budget] { return c.Swarm.Budgets.List }, func(_ *Call, b budget.Budget) core.Traits {
				kind, name, _ := strings.Cut(b.Subject, ":")
				x := core.Traits{Status: b.Reached, Kind: kind, At: b.UpdatedAt, Text: b.Subject}
				switch kind {
				case "agent":
					x.Agent = name
				case "session":
					x.Session = name
				}
				return x
			}),
	}
}

func budgetSet() *Op {
	var b budget.Budget
	var wall time.Duration
	limits := []*Param{
		flag(&b.Tokens, "tokens", "tokens at most `N`"),
		flag(&b.CostUSD, "cost", "cost at most `USD`"),
		flag(&b.Tasks, "tasks", "tasks at most `N`"),
		flag(&wall, "wall", "running time at most `DURATION`"),
	}
	return change(Op{
		Name: "budget set", Short: "Limit tenant, session:ID or agent:NAME", Role: Approver, Done: "set",
		Long: "Set the limits of a subject: tenant, session:ID or agent:NAME. A limit not given stays, 0 takes it away.\n" +
			"Reaching a limit opens an approval; it never kills work.",
		Example: "budget set agent:lister --tokens 100000 --cost 2.50",
		Params:  limits,
		Check: func(*Call) error {
			if !slices.ContainsFunc(limits, func(p *Param) bool { return p.Given }) {
				return usage("limit", "budget set: no limit is given; give --tokens, --cost, --tasks or --wall, 0 to take one away")
			}
			return bound.Check(&b)
		},
	}, arg("SUBJECT", "subject"), func(ctx context.Context, c *Call, subject string) (budget.Budget, error) {
		next := budget.Budget{TenantID: c.By.Tenant, Subject: subject}
		all, err := c.Swarm.Budgets.List(ctx, c.By.Tenant)
		if err != nil {
			return next, err
		}
		if at := slices.IndexFunc(all, func(old budget.Budget) bool { return old.Subject == subject }); at >= 0 {
			next = all[at]
		}
		for i, set := range []func(){
			func() { next.Tokens = b.Tokens },
			func() { next.CostUSD = b.CostUSD },
			func() { next.Tasks = b.Tasks },
			func() { next.WallS = core.Seconds(wall) },
		} {
			if limits[i].Given {
				set()
			}
		}
		return c.Swarm.Budgets.Set(ctx, c.By, next)
	})
}
