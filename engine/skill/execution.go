package skill

import (
	"time"

	"swarmdeck/engine/core"
)

// Status is the seed's ExecutionStatus.
type Status string

// The statuses of an execution.
const (
	StatusPending Status = "pending" // it runs
	StatusSuccess Status = "success"
	StatusFailed  Status = "failed"
	StatusTimeout Status = "timeout"
)

// Statuses are all of them.
func Statuses() []Status { return []Status{StatusPending, StatusSuccess, StatusFailed, StatusTimeout} }

// Execution is one run of one skill by a subagent (seed 3, SkillExecution),
// retries included. A record is never modified.
type Execution struct {
	ExecutionID  string    `json:"execution_id"`
	AgentID      string    `json:"agent_id"`
	SkillName    string    `json:"skill_name"`
	SkillVersion string    `json:"skill_version"`
	Parameters   core.Raw  `json:"parameters"`
	Result       core.Raw  `json:"result,omitzero"`
	Error        string    `json:"error,omitempty"` // at most 1000 characters
	Status       Status    `json:"status"`
	StartedAt    time.Time `json:"started_at"`
	CompletedAt  time.Time `json:"completed_at,omitzero"`
	DurationMS   int64     `json:"duration_ms"`
	RetryCount   int       `json:"retry_count"` // at most the skill's max_retries

	TenantID  string `json:"tenant_id"`
	TraceID   string `json:"trace_id"`
	TaskID    string `json:"task_id"`
	SessionID string `json:"session_id,omitempty"`
	// Step is the place in the run: the skill's name, or for a step of a
	// composite the composite's place, a slash and the step's id.
	Step string `json:"step"`
	Kind string `json:"kind"` // of the runner
	// Digest is that of the definition that ran.
	Digest string `json:"digest"`
	// Interrupted says that it was ended from outside: the step is run again
	// when its task is.
	Interrupted bool `json:"interrupted,omitzero"`
	// How it failed, for the attempt after a kill: a denial must stay one.
	ErrorCode string `json:"error_code,omitempty"`
	Denied    bool   `json:"denied,omitzero"` // by the judge or a person
	Final     bool   `json:"final,omitzero"`  // nothing is to run in its place
	AuditSeq  uint64 `json:"audit_seq,omitzero"`

	left bool // no engine runs, so it does not either
}

// Broken reports that it was ended from outside, or that the end of its engine
// did so and the next one will record it.
func (e *Execution) Broken() bool { return e.Interrupted || e.left }

// auditedExecution is what the audit log says about one.
type auditedExecution struct {
	Status  Status `json:"status"`
	Retries int    `json:"retry_count"`
	Result  string `json:"result_digest,omitempty"`
}

func (e *Execution) audited() auditedExecution {
	return auditedExecution{e.Status, e.RetryCount, core.SHA256(string(e.Result))}
}

// end closes an execution. duration_ms is completed_at - started_at.
func (e *Execution) end(status Status, at time.Time) {
	e.Status, e.CompletedAt = status, at
	e.DurationMS = at.Sub(e.StartedAt).Milliseconds()
}

// maxExecutionError bounds Execution.Error, in characters.
const maxExecutionError = 1000
