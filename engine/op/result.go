package op

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

func results() []*Op {
	return []*Op{
		show(Op{Name: "result show", Short: "Show a task's result", ForAgents: true}, arg("TASK", "task"),
			func(ctx context.Context, c *Call, id string) (task.Result, error) {
				return c.Tasks.Result(ctx, c.By.Tenant, id)
			}),
		list(Op{
			Name: "result list", Short: "List the results, the last to come first", ForAgents: true,
			Statuses: core.Strings(task.Succeeded, task.Failed, task.Cancelled, task.Blocked, task.TimedOut),
		}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[task.Result], error) {
			return c.Tasks.Results(ctx, c.By.Tenant, f)
		}),
	}
}
