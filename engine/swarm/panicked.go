package swarm

import (
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// maxStack bounds the stack in a task's error, in bytes; the log has all of it.
const maxStack = 4096

// panicked ends the work of a runner that panicked, and says so in the log and
// in the task's error: {"stack": "…"}.
func (s *shared) panicked(t *task.Task, work Work, value any, stack []byte) task.Outcome {
	message := core.Cut(fmt.Sprint(value), 4096)
	s.opt.Health.Log().Error("runner panicked", "tenant", t.TenantID, "component", component, "trace", t.TraceID,
		"task", t.TaskID, "kind", t.Kind, "panic", message, "stack", string(stack))
	if work != nil {
		func() {
			defer func() { _ = recover() }() // of the same runner; the task fails all the same
			work.Cancel("its runner panicked")
		}()
	}
	return task.Outcome{Status: task.Failed, Error: &task.Error{
		Code: "runner_panic", Message: message, Details: core.MustEncode(map[string]string{"stack": core.Cut(string(stack), maxStack)}),
	}}
}
