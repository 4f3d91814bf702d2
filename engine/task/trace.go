package task

import "swarmdeck/engine/core"

// Span is the W3C span-id of a task's whole life.
func Span(tenant, task string) string { return core.SpanID(tenant, "task", task, 0) }

// RunSpan is the W3C span-id of one attempt at a task.
func RunSpan(tenant, task string, attempt int) string {
	return core.SpanID(tenant, "run", task, attempt)
}

// Traceparent is what the work of the task's present attempt passes on to what
// it causes elsewhere.
func (t *Task) Traceparent() string {
	return core.Traceparent(t.TraceID, RunSpan(t.TenantID, t.TaskID, t.Attempt))
}
