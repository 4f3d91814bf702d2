package swarm

import (
	"fmt"

	"swarmdeck/engine/core"
)

// maxStack bounds the stack in a task's error, in bytes; the log has all of it.
const maxStack = 4096

// panicked ends the work of a runner that panicked, and says so in the log and
// in the task's error: {"stack": "…"}.
func (s *Swarm) panicked(t *Task, work Work, value any, stack []byte) Outcome {
	message := cut(fmt.Sprint(value), 4096)
	s.opt.Health.Log().Error("runner panicked", "tenant", t.TenantID, "component", component, "trace", t.TraceID,
		"task", t.TaskID, "kind", t.Kind, "panic", message, "stack", string(stack))
	if work != nil {
		func() {
			defer func() { _ = recover() }() // of the same runner; the task fails all the same
			work.Cancel("its runner panicked")
		}()
	}
	return Outcome{Status: Failed, Error: &TaskError{
		Code: "runner_panic", Message: message, Details: core.MustEncode(map[string]string{"stack": cut(string(stack), maxStack)}),
	}}
}
