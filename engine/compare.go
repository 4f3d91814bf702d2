package engine

import (
	"context"

	"swarmdeck/engine/dag"
)

// Compare is dag.Compare with what the tasks of either side were billed.
func (e *Engine) Compare(ctx context.Context, tenant, a, b string) (dag.Comparison, error) {
	c, err := e.DAG.Compare(ctx, tenant, a, b)
	for _, side := range []*dag.Side{&c.A, &c.B} {
		var spent dag.SideSpent
		for _, id := range side.Tasks {
			u, bad := e.Swarm.Budgets.Usage(ctx, tenant, "task:"+id)
			if bad != nil {
				return c, bad
			}
			spent.Tokens += u.Tokens
			spent.CostUSD += u.CostUSD
		}
		if spent != (dag.SideSpent{}) {
			side.Spent = &spent
		}
	}
	return c, err
}
