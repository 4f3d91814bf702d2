package command

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
)

func (t *tree) budgets() *cobra.Command {
	return t.group("budget", "Limits on tokens, cost, tasks and time",
		t.budgetSet(),
		lists(t, spec{use: "list", short: "List the budgets and what is used of them", effect: Reads}, nil, budgetColumns,
			func(c *call, f core.Filter) (core.Page[budget.Budget], error) {
				all, err := c.eng.Swarm.Budgets.List(c.ctx, c.by.Tenant)
				return pick(all, err, f, budgetTraits)
			}),
	)
}

func (t *tree) budgetSet() *cobra.Command {
	var b budget.Budget
	var wall time.Duration
	return t.command(spec{
		use: "set SUBJECT", short: "Limit tenant, session:ID or agent:NAME", effect: Writes, role: Approver, args: []string{"subject"},
		long: "Set the limits of a subject: tenant, session:ID or agent:NAME. A limit not given stays, 0 takes it away.\n" +
			"Reaching a limit opens an approval; it never kills work.",
		example: "budget set agent:lister --tokens 100000 --cost 2.50",
		flags: func(f *pflag.FlagSet) {
			f.Int64Var(&b.Tokens, "tokens", 0, "tokens at most `N`")
			f.Float64Var(&b.CostUSD, "cost", 0, "cost at most `USD`")
			f.Int64Var(&b.Tasks, "tasks", 0, "tasks at most `N`")
			spanVar(f, &wall, "wall", "running time at most `DURATION`")
		},
		check: func(*call, []string) error { return positive(b) },
		run: changes(budgetColumns, func(c *call, subject string) (budget.Budget, error) {
			next := budget.Budget{TenantID: c.by.Tenant, Subject: subject}
			all, err := c.eng.Swarm.Budgets.List(c.ctx, c.by.Tenant)
			if err != nil {
				return next, err
			}
			for _, old := range all {
				if old.Subject == subject {
					next = old
				}
			}
			for flag, set := range map[string]func(){
				"tokens": func() { next.Tokens = b.Tokens },
				"cost":   func() { next.CostUSD = b.CostUSD },
				"tasks":  func() { next.Tasks = b.Tasks },
				"wall":   func() { next.WallS = seconds(wall) },
			} {
				if c.flags.Changed(flag) {
					set()
				}
			}
			return c.eng.Swarm.Budgets.Set(c.ctx, c.by, next)
		}),
	})
}

func budgetTraits(b budget.Budget) traits {
	kind, name, _ := strings.Cut(b.Subject, ":")
	x := traits{status: b.Reached, kind: kind, at: b.UpdatedAt, text: b.Subject}
	switch kind {
	case "agent":
		x.agent = name
	case "session":
		x.session = name
	}
	return x
}

// positive refuses limits below 0 (none) and a cost that is no number.
func positive(b budget.Budget) error {
	for field, n := range map[string]float64{"tokens": float64(b.Tokens), "cost": b.CostUSD, "tasks": float64(b.Tasks)} {
		if !(n >= 0) || math.IsInf(n, 0) {
			return usage(field, "--%s: %v is not allowed; allowed: 0 (no limit) or more", field, n)
		}
	}
	return nil
}

func budgetColumns(c *call) []column[budget.Budget] {
	of := func(used, limit string, unlimited bool) string {
		if unlimited {
			return used
		}
		return used + "/" + limit
	}
	return []column[budget.Budget]{
		{title: "SUBJECT", text: func(b budget.Budget) string { return b.Subject }},
		{title: "TOKENS", right: true, text: func(b budget.Budget) string {
			return of(fmt.Sprint(b.Used.Tokens), fmt.Sprint(b.Tokens), b.Tokens == 0)
		}},
		{title: "COST", right: true, text: func(b budget.Budget) string {
			return of(fmt.Sprintf("$%.2f", b.Used.CostUSD), fmt.Sprintf("$%.2f", b.CostUSD), b.CostUSD == 0)
		}},
		{title: "TASKS", right: true, text: func(b budget.Budget) string {
			return of(fmt.Sprint(b.Used.Tasks), fmt.Sprint(b.Tasks), b.Tasks == 0)
		}},
		{title: "TIME", right: true, text: func(b budget.Budget) string {
			return of(short(time.Duration(b.Used.WallMS)*time.Millisecond), short(time.Duration(b.WallS)*time.Second), b.WallS == 0)
		}},
		{title: "REACHED", text: func(b budget.Budget) string { return b.Reached }},
		{title: "UPDATED", wide: true, text: func(b budget.Budget) string { return stamp(b.UpdatedAt) }},
	}
}
