package swarm

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
)

// appendJSON writes a header exactly as the general encoder does (a test
// holds them together). Three headers are written in every task's life, on
// the store's one writer, and this costs a fifth.
func (t *Task) appendJSON(b []byte) []byte {
	o := object{append(b, '{')}
	o.text("tenant_id", t.TenantID)
	o.text("trace_id", t.TraceID)
	o.text("task_id", t.TaskID)
	o.optional("parent_task_id", t.ParentTaskID)
	o.optional("parent_span_id", t.ParentSpan)
	o.optional("session_id", t.SessionID)
	o.text("kind", t.Kind)
	o.text("status", string(t.Status))
	o.number("priority", int64(t.Priority))
	o.number("attempt", int64(t.Attempt))
	o.number("max_attempts", int64(t.MaxAttempts))
	o.nonzero("timeout_s", uint64(t.TimeoutS))
	o.nonzero("start_timeout_s", uint64(t.StartTimeoutS))
	o.time("created_at", t.CreatedAt, true)
	o.time("updated_at", t.UpdatedAt, true)
	o.time("started_at", t.StartedAt, false)
	o.time("completed_at", t.CompletedAt, false)
	if len(t.Input) > 0 {
		o.name("input")
		o.b = append(o.b, t.Input...)
	}
	o.optional("agent", t.Agent)
	o.optional("title", t.Title)
	o.optional("worker", t.Worker)
	o.nonzero("lease", t.Lease)
	o.time("run_at", t.RunAt, false)
	o.optional("approval_id", t.ApprovalID)
	o.optional("waiting", t.Waiting)
	o.texts("after", t.After)
	o.nonzero("pending", uint64(t.Pending))
	o.nonzero("denials", uint64(t.Denials))
	o.optional("error_code", t.ErrorCode)
	o.optional("feedback", t.Feedback)
	o.flag("resumes", t.Resumes)
	o.nonzero("deaths", uint64(t.Deaths))
	o.flag("paused", t.Paused)
	o.flag("cancel_requested", t.CancelRequested)
	o.optional("retry_of", t.RetryOf)
	o.optional("intent", t.Intent)
	o.optional("created_by", t.CreatedBy)
	o.optional("created_kind", string(t.CreatedKind))
	o.optional("created_person", t.CreatedPerson)
	o.optional("policy", t.Policy)
	o.optional("bound", t.Bound)
	o.nonzero("audit_seq", t.AuditSeq)
	return append(o.b, '}')
}

// appendJSON writes a result as the general encoder does. Its output was
// checked to be JSON.
func (r *Result) appendJSON(b []byte) []byte {
	o := object{append(b, '{')}
	o.text("tenant_id", r.TenantID)
	o.text("trace_id", r.TraceID)
	o.text("task_id", r.TaskID)
	o.text("status", string(r.Status))
	o.name("output")
	o.b = append(o.b, r.Output...)
	if r.Error != nil {
		o.name("error")
		o.b = append(o.b, core.MustEncode(r.Error)...)
	}
	o.optional("produced_by", r.ProducedBy)
	o.time("completed_at", r.CompletedAt, true)
	if r.Confidence != nil {
		o.name("confidence")
		o.b = append(o.b, core.MustEncode(*r.Confidence)...)
	}
	o.texts("denials", r.Denials)
	return append(o.b, '}')
}

// object appends the members of a JSON object.
type object struct{ b []byte }

func (o *object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *object) quote(s string) {
	// Only invalid UTF-8 is an error, and it is written as U+FFFD then.
	o.b, _ = jsontext.AppendQuote(o.b, s)
}

func (o *object) text(name, s string) {
	o.name(name)
	o.quote(s)
}

func (o *object) optional(name, s string) {
	if s != "" {
		o.text(name, s)
	}
}

func (o *object) texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	o.name(name)
	o.b = append(o.b, '[')
	for i, s := range list {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.quote(s)
	}
	o.b = append(o.b, ']')
}

func (o *object) number(name string, n int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

func (o *object) nonzero(name string, n uint64) {
	if n != 0 {
		o.name(name)
		o.b = strconv.AppendUint(o.b, n, 10)
	}
}

func (o *object) flag(name string, v bool) {
	if v {
		o.name(name)
		o.b = append(o.b, "true"...)
	}
}

func (o *object) time(name string, at time.Time, always bool) {
	if always || !at.IsZero() {
		o.name(name)
		o.b = append(o.b, '"')
		o.b = at.AppendFormat(o.b, time.RFC3339Nano)
		o.b = append(o.b, '"')
	}
}
