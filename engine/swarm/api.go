// Package swarm is the durable brain: tenants, sessions, tasks and results,
// the priority queue with leases, retries and time-outs, budgets and the
// emergency stop. It runs tasks through runners that drivers provide.
package swarm

import (
	"context"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// Tenant is a strict isolation boundary (seed 1).
type Tenant struct {
	TenantID  string    `json:"tenant_id"`
	CreatedAt time.Time `json:"created_at"`
}

// SessionState is the seed's enum.
type SessionState string

// The session states.
const (
	SessionCreated SessionState = "created"
	SessionRunning SessionState = "running"
	SessionPaused  SessionState = "paused"
	SessionStopped SessionState = "stopped"
)

// Session is a time-bounded operating context (seed 1, SwarmSession).
type Session struct {
	SessionID string       `json:"session_id"`
	Name      string       `json:"name,omitempty"` // label from a swarm file or --name, unique among live sessions
	TenantID  string       `json:"tenant_id"`
	State     SessionState `json:"state"`
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
	Reason    string       `json:"reason,omitempty"`
	// Pausing lists the tasks and agents that have not yet acknowledged a
	// pause; the session shows "pausing" until it is empty.
	Pausing  []string `json:"pausing,omitempty"`
	AuditSeq uint64   `json:"audit_seq,omitzero"`
}

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

// Terminal reports whether a task with this status is over.
func (s Status) Terminal() bool { return s != Queued && s != Running }

// Task is one unit of work (seed 1). Its input lives apart (Input).
type Task struct {
	TenantID     string `json:"tenant_id"`
	TraceID      string `json:"trace_id"`
	TaskID       string `json:"task_id"`
	ParentTaskID string `json:"parent_task_id,omitempty"`
	SessionID    string `json:"session_id,omitempty"`
	Kind         string `json:"kind"`

	Status      Status `json:"status"`
	Priority    int    `json:"priority"`
	Attempt     int    `json:"attempt"`
	MaxAttempts int    `json:"max_attempts"`
	TimeoutS    int    `json:"timeout_s,omitzero"`

	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	CompletedAt time.Time `json:"completed_at,omitzero"`

	// Input is filled in by Task and Dispatch, not by lists.
	Input core.Raw `json:"input,omitempty"`

	Agent      string    `json:"agent,omitempty"`       // the agent meant to run it
	Title      string    `json:"title,omitempty"`       // one line for lists, from the input
	Worker     string    `json:"worker,omitempty"`      // lease holder while running
	Lease      uint64    `json:"lease,omitzero"`        // fencing token of the claim
	RunAt      time.Time `json:"run_at,omitzero"`       // not before: retry back-off
	ApprovalID string    `json:"approval_id,omitempty"` // the approval it waits for or ran under
	Waiting    string    `json:"waiting,omitempty"`     // "approval" while a gate is open
	After      []string  `json:"after,omitempty"`       // tasks that must succeed first
	Denials    int       `json:"denials,omitzero"`      // denied and continued, this run
	ErrorCode  string    `json:"error_code,omitempty"`  // of the last failed attempt or result
	PausedAt   time.Time `json:"paused_at,omitzero"`    // its process is stopped
	CreatedBy  string    `json:"created_by,omitempty"`
	AuditSeq   uint64    `json:"audit_seq,omitzero"`
}

// TaskError is the seed's error object (contract 1.6).
type TaskError struct {
	Code      string   `json:"code"`    // at most 64 characters
	Message   string   `json:"message"` // at most 4096 characters
	Retryable bool     `json:"retryable"`
	Details   core.Raw `json:"details,omitempty"`
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
	Denials     []string   `json:"denials,omitempty"` // decision ids denied during the run
}

// Dispatch asks for a new task.
type Dispatch struct {
	Kind           string        `json:"kind"`
	Input          core.Raw      `json:"input"`
	Priority       *int          `json:"priority,omitempty"`     // nil means 50
	Timeout        time.Duration `json:"-"`                      // 0 means none; else 1s-24h
	MaxAttempts    *int          `json:"max_attempts,omitempty"` // nil means 3; 0 means one attempt
	Session        string        `json:"session_id,omitempty"`
	Parent         string        `json:"parent_task_id,omitempty"`
	Agent          string        `json:"agent,omitempty"`
	Trace          string        `json:"trace_id,omitempty"`
	IdempotencyKey string        `json:"idempotency_key,omitempty"` // the same key returns the first task
	After          []string      `json:"after,omitempty"`
	Intent         string        `json:"-"`
}

// Reason says why a task waits. Kind is one of gate, lease, pause, budget,
// capacity, dependency, backoff, estop, session, or "" when it does not wait.
type Reason struct {
	TaskID string `json:"task_id"`
	Status Status `json:"status"`
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Ref    string `json:"ref,omitempty"` // approval, session, agent, budget or task to look at
}

// Usage is what something spent.
type Usage struct {
	Tokens  int64   `json:"tokens"`
	CostUSD float64 `json:"cost_usd"`
	Tasks   int64   `json:"tasks"`
	WallMS  int64   `json:"wall_ms"`
}

// Budget limits a subject; a zero limit is no limit. Subject is "tenant",
// "session:ID" or "agent:NAME".
type Budget struct {
	TenantID  string    `json:"tenant_id"`
	Subject   string    `json:"subject"`
	Tokens    int64     `json:"tokens,omitzero"`
	CostUSD   float64   `json:"cost_usd,omitzero"`
	Tasks     int64     `json:"tasks,omitzero"`
	WallS     int64     `json:"wall_s,omitzero"`
	Used      Usage     `json:"used"`
	Reached   string    `json:"reached,omitempty"` // which limit, once reached
	UpdatedAt time.Time `json:"updated_at"`
}

// EStop is the state of the emergency stop.
type EStop struct {
	TenantID string    `json:"tenant_id"`
	On       bool      `json:"on"`
	Reason   string    `json:"reason,omitempty"`
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// Waiting lists what has not acknowledged the freeze yet.
	Waiting []string `json:"waiting,omitempty"`
	Frozen  int      `json:"frozen"`
}

// Job is one attempt of a task, handed to a runner.
type Job struct {
	Task   Task // with Input
	Intent string
	// Log receives output lines as they come: level DEBUG|INFO|WARN|ERROR.
	Log func(level, line string)
	// Beat renews the lease; a runner calls it at least 3 times a second
	// while its work is alive.
	Beat func()
	// Use adds spent tokens and cost to the budgets.
	Use func(tokens int64, costUSD float64)
	// Spill is the file to keep output past the inline limit in.
	Spill string
}

// Outcome is how one attempt ended.
type Outcome struct {
	Status     Status // Succeeded, Failed, Cancelled, TimedOut or Blocked
	Output     core.Raw
	Error      *TaskError
	Confidence *float64
	Text       string // the output's text, for the result gate
}

// Runner carries out the tasks of one kind. Drivers and the fleet provide them.
type Runner interface {
	// Check validates an input at dispatch and returns a title for lists and
	// the effects' action for the judge.
	Check(tenant string, input core.Raw) (title string, action judge.Action, err error)
	// Slot reports whether a task for this agent ("" for none) can start now,
	// and why not.
	Slot(tenant, agent string) (free bool, why string)
	// Start begins the work and returns at once. ctx ends when the engine closes.
	Start(ctx context.Context, job Job) (Work, error)
}

// Work is a started job. Its methods may be called from any goroutine.
type Work interface {
	// Done is closed when the work has ended; Outcome is valid from then on.
	Done() <-chan struct{}
	Outcome() Outcome
	// Cancel interrupts, then kills after the grace; it does not wait.
	Cancel(reason string)
	// Pause stops the work (SIGSTOP over the process tree) and returns when
	// that is in effect; Resume continues it.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// LogLine is one line of a task's or an agent's log (seed 2, LogEntry).
type LogLine struct {
	Seq       uint64    `json:"seq"` // 1-based within its stream
	Timestamp time.Time `json:"timestamp"`
	Level     string    `json:"level"` // DEBUG, INFO, WARN, ERROR
	Message   string    `json:"message"`
	TaskID    string    `json:"task_id,omitempty"`
	Source    string    `json:"source,omitempty"` // "message", "tool", "stderr", …
}

// Counts are the totals of a tenant's tasks, kept by counters.
type Counts struct {
	Total    int64            `json:"total"`
	ByStatus map[Status]int64 `json:"by_status"`
	Waiting  int64            `json:"waiting"` // queued or running, with an open approval
}

// Service is the swarm's API.
type Service interface {
	CreateTenant(ctx context.Context, by core.Caller, id string) (Tenant, error)
	Tenant(ctx context.Context, id string) (Tenant, error)
	Tenants(ctx context.Context) ([]Tenant, error)

	CreateSession(ctx context.Context, by core.Caller, name string) (Session, error)
	StartSession(ctx context.Context, by core.Caller, id string) (Session, error)
	PauseSession(ctx context.Context, by core.Caller, id, reason string) (Session, error)
	ResumeSession(ctx context.Context, by core.Caller, id string) (Session, error)
	StopSession(ctx context.Context, by core.Caller, id, reason string) (Session, error)
	Session(ctx context.Context, tenant, id string) (Session, error)
	Sessions(ctx context.Context, tenant string, f core.Filter) (core.Page[Session], error)

	Dispatch(ctx context.Context, by core.Caller, d Dispatch) (Task, error)
	Cancel(ctx context.Context, by core.Caller, id, reason string) (Task, error)
	Retry(ctx context.Context, by core.Caller, id string) (Task, error)
	Undo(ctx context.Context, by core.Caller, id string) (Task, error)
	// PauseTask and ResumeTask stop and continue one running task.
	PauseTask(ctx context.Context, by core.Caller, id, reason string) (Task, error)
	ResumeTask(ctx context.Context, by core.Caller, id string) (Task, error)
	Why(ctx context.Context, tenant, id string) (Reason, error)
	Task(ctx context.Context, tenant, id string) (Task, error)
	Tasks(ctx context.Context, tenant string, f core.Filter) (core.Page[Task], error)
	// Tree returns the task and all its descendants, parents first.
	Tree(ctx context.Context, tenant, id string) ([]Task, error)
	// Wait returns when the task has the status, or any terminal one when
	// status is "".
	Wait(ctx context.Context, tenant, id string, status Status) (Task, error)
	Result(ctx context.Context, tenant, id string) (Result, error)
	Results(ctx context.Context, tenant string, f core.Filter) (core.Page[Result], error)
	// Log returns up to n lines of a stream after seq from, oldest first.
	// A stream is a task id or "agent:NAME". Last is the newest seq.
	Log(ctx context.Context, tenant, stream string, from uint64, n int) (lines []LogLine, last uint64, err error)
	// AppendLog adds lines to a stream.
	AppendLog(ctx context.Context, by core.Caller, stream string, lines []LogLine) error

	SetBudget(ctx context.Context, by core.Caller, b Budget) (Budget, error)
	Budgets(ctx context.Context, tenant string) ([]Budget, error)
	// Use adds to what a task spent, and so to its agent, session and tenant.
	Use(ctx context.Context, by core.Caller, taskID string, tokens int64, costUSD float64) error

	StopAll(ctx context.Context, by core.Caller, reason string) (EStop, error)
	Thaw(ctx context.Context, by core.Caller, reason string) (EStop, error)
	EStop(ctx context.Context, tenant string) (EStop, error)

	// The worker's side, used by the scheduler and by tests.
	Claim(ctx context.Context, by core.Caller, worker string, n int) ([]Task, error)
	Beat(worker string)
	Complete(ctx context.Context, by core.Caller, taskID string, lease uint64, out Outcome) (Result, error)

	Counts(ctx context.Context, tenant string) (Counts, error)

	// Run schedules until ctx ends, then waits for the running work to stop.
	Run(ctx context.Context) error
}
