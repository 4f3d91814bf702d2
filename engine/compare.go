package engine

import (
	"context"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/story"
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

// Story is what happened since a time, the oldest first; more says that older things
// of it are left out.
func (e *Engine) Story(ctx context.Context, tenant string, q story.Query) (lines []story.Line, more bool, err error) {
	t := story.Teller{DAG: e.DAG, Tasks: e.Tasks, Swarm: e.Swarm, Fleet: e.Fleet, Judge: e.Judge, Audit: e.Audit, Trees: e.Trees}
	return t.Tell(ctx, tenant, q)
}
