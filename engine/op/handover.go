package op

import (
	"context"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/operator"
)

func operatorHandover() *Op {
	var to string
	since := Ago{Text: "8h"}
	var o *Op
	o = define(Op{
		Name: "operator handover", Short: "Report what is open and what happened, for the next operator", Effect: Reads,
		Long: "Report open approvals, what was decided and what failed since, agents in trouble, budgets near a limit, the\n" +
			"emergency stop and running work. --to NAME also records in the audit log that NAME takes over; it moves and\n" +
			"escalates nothing.",
		Example: "operator handover --since 8h --to carol",
		Params: []*Param{
			flag(&since, "since", "from when on: a `TIME` (RFC 3339) or a duration such as 8h"),
			flag(&to, "to", "record that this `NAME` takes over"),
		},
		Check: func(*Call) error {
			if to == "" {
				return nil
			}
			if err := operator.CheckName("to", to); err != nil {
				return err
			}
			o.Effect, o.Role = Writes, Operator
			return nil
		},
	}, func(ctx context.Context, c *Call) (engine.Handover, error) {
		if to == "" {
			return c.Handover(ctx, c.By.Tenant, since.Time)
		}
		return c.HandOver(ctx, c.By, since.Time, to)
	})
	return o
}

func operatorFigures() *Op {
	since := Ago{Text: "168h"}
	return define(Op{
		Name: "operator figures", Short: "Show how operators answer: share approved, time to decide, canaries", Effect: Reads,
		Long: "Show for each operator who answered since then: how many answers, the share approved, edits and denials, the time\n" +
			"from the card being shown to the answer (median and 90 %), answers within 2 s at high risk, and canaries approved.\n" +
			"Answers from scripts have no time. See `approval canary`.",
		Example: "operator figures --since 24h",
		Params:  []*Param{flag(&since, "since", "from when on: a `TIME` (RFC 3339) or a duration such as 24h")},
	}, func(ctx context.Context, c *Call) (all core.Page[judge.Figures], err error) {
		var whole bool
		if all.Items, whole, err = c.Judge.Figures(ctx, c.By.Tenant, since.Time); err == nil && !whole {
			c.Note("only the newest approvals were looked at: there are more since then")
		}
		return all, err
	})
}
