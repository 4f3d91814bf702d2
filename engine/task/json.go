package task

import (
	"swarmdeck/engine/core"
)

// appendJSON writes a header exactly as the general encoder does (a test
// holds them together). Three headers are written in every task's life, on
// the store's one writer, and this costs a fifth.
func (t *Task) appendJSON(b []byte) []byte {
	o := core.BeginObject(b)
	o.Text("tenant_id", t.TenantID)
	o.Text("trace_id", t.TraceID)
	o.Text("task_id", t.TaskID)
	o.Optional("parent_task_id", t.ParentTaskID)
	o.Optional("parent_span_id", t.ParentSpan)
	o.Optional("session_id", t.SessionID)
	o.Text("kind", t.Kind)
	o.Text("status", string(t.Status))
	o.Number("priority", int64(t.Priority))
	o.Number("attempt", int64(t.Attempt))
	o.Number("max_attempts", int64(t.MaxAttempts))
	o.Nonzero("timeout_s", uint64(t.TimeoutS))
	o.Nonzero("start_timeout_s", uint64(t.StartTimeoutS))
	o.Time("created_at", t.CreatedAt, true)
	o.Time("updated_at", t.UpdatedAt, true)
	o.Time("started_at", t.StartedAt, false)
	o.Time("completed_at", t.CompletedAt, false)
	if len(t.Input) > 0 {
		o.Raw("input", t.Input)
	}
	o.Optional("agent", t.Agent)
	o.Optional("title", t.Title)
	o.Optional("worker", t.Worker)
	o.Nonzero("lease", t.Lease)
	o.Time("run_at", t.RunAt, false)
	o.Optional("approval_id", t.ApprovalID)
	o.Optional("decision_id", t.DecisionID)
	o.Optional("waiting", t.Waiting)
	o.Texts("after", t.After)
	o.Nonzero("pending", uint64(t.Pending))
	o.Nonzero("denials", uint64(t.Denials))
	o.Optional("error_code", t.ErrorCode)
	o.Optional("feedback", t.Feedback)
	o.Flag("resumes", t.Resumes)
	o.Nonzero("deaths", uint64(t.Deaths))
	o.Flag("sent", t.Sent)
	o.Flag("begun", t.Begun)
	o.Flag("paused", t.Paused)
	o.Flag("cancel_requested", t.CancelRequested)
	o.Optional("retry_of", t.RetryOf)
	o.Optional("retried_as", t.RetriedAs)
	o.Optional("intent", t.Intent)
	o.Optional("created_by", t.CreatedBy)
	o.Optional("created_kind", string(t.CreatedKind))
	o.Optional("created_person", t.CreatedPerson)
	o.Optional("created_door", string(t.CreatedDoor))
	if t.CreatedFar {
		o.Raw("created_far", core.Raw("true"))
	}
	o.Optional("policy", t.Policy)
	o.Optional("bound", t.Bound)
	if t.Expect != nil {
		o.Raw("expect", core.MustEncode(t.Expect))
	}
	o.Nonzero("audit_seq", t.AuditSeq)
	return o.End()
}

// appendJSON writes a result as the general encoder does. Its output was
// checked to be JSON.
func (r *Result) appendJSON(b []byte) []byte {
	o := core.BeginObject(b)
	o.Text("tenant_id", r.TenantID)
	o.Text("trace_id", r.TraceID)
	o.Text("task_id", r.TaskID)
	o.Text("status", string(r.Status))
	o.Raw("output", r.Output)
	if r.Error != nil {
		o.Raw("error", core.MustEncode(r.Error))
	}
	o.Optional("produced_by", r.ProducedBy)
	o.Time("completed_at", r.CompletedAt, true)
	if r.Confidence != nil {
		o.Raw("confidence", core.MustEncode(*r.Confidence))
	}
	o.Texts("denials", r.Denials)
	return o.End()
}
