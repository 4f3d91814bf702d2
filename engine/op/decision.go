package op

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

func decisions() []*Op {
	id := arg("ID", "decision")
	return []*Op{
		list(Op{
			Name: "decision list", Short: "List the gate decisions, newest first",
			Statuses: core.Strings(judge.Approve, judge.Deny, judge.HITL),
		}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[judge.GateDecision], error) {
			return c.Judge.Decisions(ctx, c.By.Tenant, f)
		}),
		show(Op{Name: "decision show", Short: "Show a gate decision"}, id,
			func(ctx context.Context, c *Call, id string) (judge.GateDecision, error) {
				return c.Judge.Decision(ctx, c.By.Tenant, id)
			}),
		show(Op{Name: "decision why", Short: "Say on what grounds a policy decided: which rule, of which version, and what it read"}, id, grounds),
	}
}

func grounds(ctx context.Context, c *Call, id string) (judge.Grounds, error) {
	return c.Judge.Grounds(ctx, c.By.Tenant, id)
}
