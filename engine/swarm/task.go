package swarm

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/core"
)

// Status is the seed's task status.
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

func (s Status) known() bool { return contains(Statuses(), s) }

// Terminal reports whether a task with this status is over.
func (s Status) Terminal() bool { return s != Queued && s != Running }

// Task is one unit of work (seed 1). Its input lives apart, so that a list
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

	// Input is filled in by Task and Dispatch, not by lists.
	Input core.Raw `json:"input,omitempty"`

	Agent           string         `json:"agent,omitempty"`       // the agent meant to run it
	Title           string         `json:"title,omitempty"`       // one line for lists, from the input
	Worker          string         `json:"worker,omitempty"`      // lease holder while running
	Lease           uint64         `json:"lease,omitzero"`        // fencing token of the claim
	RunAt           time.Time      `json:"run_at,omitzero"`       // not before: retry back-off
	ApprovalID      string         `json:"approval_id,omitempty"` // the approval it waits for or ran under
	Waiting         string         `json:"waiting,omitempty"`     // "approval" while its gate is open
	After           []string       `json:"after,omitempty"`       // tasks that must succeed first
	Pending         int            `json:"pending,omitzero"`      // how many of After are not over
	Denials         int            `json:"denials,omitzero"`      // denied and continued, in this run
	ErrorCode       string         `json:"error_code,omitempty"`  // of the last failed attempt, or the result
	Feedback        string         `json:"feedback,omitempty"`    // why the last result was rejected
	Resumes         bool           `json:"resumes,omitzero"`      // its work goes on where an engine died
	Deaths          int            `json:"deaths,omitzero"`       // engines that died under it since it last got on
	Paused          bool           `json:"paused,omitzero"`       // stopped by an operator
	CancelRequested bool           `json:"cancel_requested,omitzero"`
	RetryOf         string         `json:"retry_of,omitempty"`
	Intent          string         `json:"intent,omitempty"`
	CreatedBy       string         `json:"created_by,omitempty"`
	CreatedKind     core.ActorKind `json:"created_kind,omitempty"`
	CreatedPerson   string         `json:"created_person,omitempty"` // who that is to the door, under whatever name
	Policy          string         `json:"policy,omitempty"`         // version of the rules that let it in
	Bound           string         `json:"bound,omitempty"`          // digest of the files that it was judged with
	AuditSeq        uint64         `json:"audit_seq,omitzero"`
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

func (t *Task) ref() ref { return ref{t.TenantID, t.TaskID} }

// lastTry reports whether no attempt is left after this one.
func (t *Task) lastTry() bool { return t.Attempt+1 >= max(1, t.MaxAttempts) }

// TaskError is the seed's error object (contract 1.6).
type TaskError struct {
	Code      string   `json:"code"`    // at most 64 characters
	Message   string   `json:"message"` // at most 4096 characters
	Retryable bool     `json:"retryable"`
	Details   core.Raw `json:"details,omitempty"`
}

// maxDetails bounds an error's details, in bytes of JSON.
const maxDetails = 64 << 10

// checked cuts a runner's error to the seed's limits.
func (e *TaskError) checked() (*TaskError, error) {
	c := *e
	c.Code, c.Message = cut(c.Code, 64), cut(c.Message, 4096)
	if c.Code == "" {
		c.Code = "failed"
	}
	if len(c.Details) == 0 {
		return &c, nil
	}
	return &c, core.CheckObject("error.details", c.Details, maxDetails)
}

func timedOut() *TaskError {
	return &TaskError{Code: "timed_out", Message: "the attempt ran longer than timeout_s", Retryable: true}
}

// Result is the terminal outcome of a task (seed 1).
type Result struct {
	TenantID    string     `json:"tenant_id"`
	TraceID     string     `json:"trace_id"`
	TaskID      string     `json:"task_id"`
	Status      Status     `json:"status"`
	Output      core.Raw   `json:"output"`
	Error       *TaskError `json:"error,omitempty"`
	ProducedBy  string     `json:"produced_by,omitempty"`
	CompletedAt time.Time  `json:"completed_at"`
	Confidence  *float64   `json:"confidence,omitempty"`
	Denials     []string   `json:"denials,omitempty"` // decisions that denied during the run

	decision core.Raw // the gate's, for the audit event
}

// cut shortens text from outside to at most n bytes of valid UTF-8, without
// splitting a character.
func cut(s string, n int) string {
	if len(s) > n {
		for n > 0 && s[n]&0xC0 == 0x80 {
			n--
		}
		s = s[:n]
	}
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "?") // never longer than what it replaces
}
