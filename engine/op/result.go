package op

import (
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

func results() []*Op {
	return []*Op{
		show(Op{Name: "result show", Short: "Show a task's result", ForAgents: true}, arg("TASK", "task"),
			byTenant(func(c *Call) tenantRead[string, task.Result] { return c.Tasks.Result })),
		list(Op{
			Name: "result list", Short: "List the results, the last to come first", ForAgents: true,
			Statuses: core.Strings(task.Succeeded, task.Failed, task.Cancelled, task.Blocked, task.TimedOut),
		}, byTenant(func(c *Call) tenantRead[core.Filter, core.Page[task.Result]] { return c.Tasks.Results })),
	}
}
