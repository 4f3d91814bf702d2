package op

import (
	"context"

	"swarmdeck/engine"
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
