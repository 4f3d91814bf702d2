// Package task is what a task is and how it is kept: its header, input and
// result, the lists that tasks are found by, what is counted of them, and the
// lines they log. A Table holds those of all tenants.
//
// It moves a task as it is told to and says so in the audit log; whether and
// when a task may move is for its callers. Retention takes finished tasks and
// old lines out again.
package task

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"swarmdeck/engine/core"
)

// Status is a task's status.
type Status string

// The task statuses.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	Blocked   Status = "blocked"
	TimedOut  Status = "timed_out"
)

// Statuses are all of them, in the order screens show them.
func Statuses() []Status {
	return []Status{Queued, Running, Succeeded, Failed, Blocked, TimedOut, Cancelled}
}

// Check reports a status that none is.
func (s Status) Check() error {
	if !s.known() {
		return core.Invalid("status", string(s), fmt.Sprint("one of ", Statuses()))
	}
	return nil
}

func (s Status) known() bool { return slices.Contains(Statuses(), s) }

// Terminal reports whether a task with this status is over.
func (s Status) Terminal() bool { return s != Queued && s != Running }

// Task is one unit of work. Its input lives apart, so that a list
// reads headers only.
type Task struct {
	TenantID     string `json:"tenant_id"`
	TraceID      string `json:"trace_id"`
	TaskID       string `json:"task_id"`
	ParentTaskID string `json:"parent_task_id,omitempty"`
	ParentSpan   string `json:"parent_span_id,omitempty"` // W3C span-id of who asked, outside of here
	SessionID    string `json:"session_id,omitempty"`
	Kind         string `json:"kind"`

	Status      Status `json:"status"`
	Priority    int    `json:"priority"` // 0-100, higher first
	Attempt     int    `json:"attempt"`  // 0 on the first run
	MaxAttempts int    `json:"max_attempts"`
	TimeoutS    int    `json:"timeout_s,omitzero"` // of one attempt; 0 is none
	// StartTimeoutS is how long after its creation the task must first be
	// claimed; 0 is for ever. Later attempts are not bound by it.
	StartTimeoutS int `json:"start_timeout_s,omitzero"`

	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	CompletedAt time.Time `json:"completed_at,omitzero"`

	// Input is filled in by Get and where a task is made, not by lists.
	Input core.Raw `json:"input,omitempty"`

	Agent           string         `json:"agent,omitempty"`       // the agent meant to run it
	Title           string         `json:"title,omitempty"`       // one line for lists, from the input
	Worker          string         `json:"worker,omitempty"`      // lease holder while running
	Lease           uint64         `json:"lease,omitzero"`        // fencing token of the claim
	RunAt           time.Time      `json:"run_at,omitzero"`       // not before: retry back-off
	ApprovalID      string         `json:"approval_id,omitempty"` // the approval it waits for or ran under
	DecisionID      string         `json:"decision_id,omitempty"` // that let its attempt start without one
	Waiting         string         `json:"waiting,omitempty"`     // "approval" while its gate is open
	After           []string       `json:"after,omitempty"`       // tasks that must succeed first
	Pending         int            `json:"pending,omitzero"`      // how many of After are not over
	Denials         int            `json:"denials,omitzero"`      // denied and continued, in this run
	ErrorCode       string         `json:"error_code,omitempty"`  // of the last failed attempt, or the result
	Feedback        string         `json:"feedback,omitempty"`    // why the last result was rejected
	Resumes         bool           `json:"resumes,omitzero"`      // its work goes on where an engine died
	Deaths          int            `json:"deaths,omitzero"`       // engines that died under it since it last got on
	Sent            bool           `json:"sent,omitzero"`         // its agent may have it, and nobody knows what came of it
	Begun           bool           `json:"begun,omitzero"`        // its effect may be half there: it goes on before anybody is asked
	Paused          bool           `json:"paused,omitzero"`       // stopped by an operator
	CancelRequested bool           `json:"cancel_requested,omitzero"`
	RetryOf         string         `json:"retry_of,omitempty"`
	RetriedAs       string         `json:"retried_as,omitempty"` // the task that was made to try it again
	Intent          string         `json:"intent,omitempty"`
	CreatedBy       string         `json:"created_by,omitempty"`
	CreatedKind     core.ActorKind `json:"created_kind,omitempty"`
	CreatedPerson   string         `json:"created_person,omitempty"` // who that is to the door, under whatever name
	CreatedDoor     core.Door      `json:"created_door,omitempty"`   // mcp where a client of a model asked in their name; "" otherwise
	CreatedFar      bool           `json:"created_far,omitzero"`     // they sat at another machine
	Policy          string         `json:"policy,omitempty"`         // version of the rules that let it in
	Bound           string         `json:"bound,omitempty"`          // digest of the files that it was judged with
	Expect          *Expect        `json:"expect,omitempty"`         // what its output must be
	AuditSeq        uint64         `json:"audit_seq,omitzero"`
}

// Expect is what the output of a task must be: else it is tried again with why it is
// not, and fails after its last attempt.
type Expect struct {
	Schema  core.Raw `json:"schema,omitempty"`  // JSON Schema, at most 16 KiB
	Success string   `json:"success,omitempty"` // CEL over "output", true for a success
}

// maxState bounds what appendState appends, in bytes.
const maxState = 64

// appendState appends what events say of a task in words. Written by hand
// because every transition of every task carries one.
func (t *Task) appendState(b []byte) core.Raw {
	b = append(b, `{"status":"`...)
	b = append(b, t.Status...)
	b = append(b, `","attempt":`...)
	b = strconv.AppendInt(b, int64(t.Attempt), 10)
	return append(b, '}')
}

// Seq is the number that a task's id ends with, 0 for what is no id.
func Seq(id string) uint64 {
	_, _, seq, _ := core.ParseID(id)
	return seq
}

// Seq is the task's number.
func (t *Task) Seq() uint64 { return Seq(t.TaskID) }

// LastTry reports whether no attempt is left after this one.
func (t *Task) LastTry() bool { return t.Attempt+1 >= max(1, t.MaxAttempts) }

// StartBy is when a task times out unless it was claimed before; zero when
// nothing binds it. Whatever it waits for (an approval, a free slot, a paused
// session, the emergency stop), the deadline stands: silence starts nothing.
func (t *Task) StartBy() time.Time {
	if t.StartTimeoutS == 0 || t.Status != Queued || !t.StartedAt.IsZero() {
		return time.Time{}
	}
	return t.CreatedAt.Add(time.Duration(t.StartTimeoutS) * time.Second).Truncate(time.Microsecond)
}

// possible reports what about a stored header no commit can have written. id is
// that of its key.
func (t *Task) possible(tenant, id string) error {
	why := ""
	switch {
	case t.TaskID != id:
		why = fmt.Sprintf("it says that it is %q", core.Cut(t.TaskID, 64))
	case t.TenantID != tenant:
		why = fmt.Sprintf("it says that it is of tenant %q", core.Cut(t.TenantID, 64))
	case !t.Status.known():
		why = fmt.Sprintf("status %q is none of %v", core.Cut(string(t.Status), 64), Statuses())
	case t.Status == Running && t.Lease == 0 && t.Waiting == "":
		why = "it is running without a lease"
	case t.Status.Terminal() == t.CompletedAt.IsZero():
		why = fmt.Sprintf("it is %s, and completed_at is %q", t.Status, t.CompletedAt)
	default:
		return nil
	}
	return Damaged(tenant, Seq(id), errors.New(why))
}

// Damaged is an error about a task that can't be read, or that says what can't
// be.
func Damaged(tenant string, seq uint64, err error) error {
	return &core.Damaged{Noun: "task", Key: core.NewID(core.TaskPrefix, tenant, seq), Err: err}
}

// Asker is who asked for the task.
func (t *Task) Asker() core.Caller {
	return core.Caller{Tenant: t.TenantID, Name: t.CreatedBy, Kind: t.CreatedKind, Person: t.CreatedPerson, Door: t.CreatedDoor, Far: t.CreatedFar}
}

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
