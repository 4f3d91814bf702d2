package skill

import "swarmdeck/engine/core"

// StepSpan is the W3C span-id of a skill's place in one attempt of its task.
func StepSpan(tenant, task, step string, attempt int) string {
	return core.SpanID(tenant, "step", task+" "+step, attempt)
}

// Traceparent is what a skill passes on to what it causes elsewhere; "" for one
// that belongs to no trace.
func (c *Call) Traceparent() string {
	if c.TraceID == "" {
		return ""
	}
	return core.Traceparent(c.TraceID, StepSpan(c.Tenant, c.TaskID, c.Step, c.Attempt))
}
