// Package fleet keeps agents: who they are, how they are, what they were
// asked and what they said. It supervises their runtimes and carries out
// agent.prompt tasks, with every tool call gated by the judge.
package fleet

import (
	"context"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

// AgentStatus is the seed's enum.
type AgentStatus string

// The statuses.
const (
	Starting AgentStatus = "starting"
	Idle     AgentStatus = "idle"
	Busy     AgentStatus = "busy"
	Offline  AgentStatus = "offline"
	Failed   AgentStatus = "failed"
)

// Agent is one agent of the fleet (seed 2).
type Agent struct {
	Name        string      `json:"name"`
	WorkspaceID string      `json:"workspace_id"`
	Status      AgentStatus `json:"status"`
	Role        string      `json:"role"`
	Project     string      `json:"project"`
	LastTask    string      `json:"last_task,omitempty"`
	CreatedAt   time.Time   `json:"created_at"`
	UpdatedAt   time.Time   `json:"updated_at"`

	TenantID  string            `json:"tenant_id"`
	Runtime   string            `json:"runtime"` // "exec"
	Command   []string          `json:"command,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Dir       string            `json:"dir,omitempty"`
	SessionID string            `json:"session_id,omitempty"`
	Reason    string            `json:"reason,omitempty"`  // why offline or failed
	TaskID    string            `json:"task_id,omitempty"` // while busy
	Paused    bool              `json:"paused,omitempty"`
	Pausing   bool              `json:"pausing,omitempty"`   // asked, not yet acknowledged
	Attention string            `json:"attention,omitempty"` // the agent asks for a person
	Waiting   string            `json:"waiting,omitempty"`   // approval id it waits for
	PID       int               `json:"pid,omitzero"`
	Restarts  int               `json:"restarts,omitzero"`
	Usage     swarm.Usage       `json:"usage"`
	AuditSeq  uint64            `json:"audit_seq,omitzero"`
}

// State is the common word for any runtime's status: starting, idle, working,
// waiting for you, pausing, paused, offline, failed.
func (a Agent) State() string {
	switch {
	case a.Waiting != "" || a.Attention != "":
		return "waiting for you"
	case a.Pausing:
		return "pausing"
	case a.Paused:
		return "paused"
	case a.Status == Busy:
		return "working"
	}
	return string(a.Status)
}

// Create asks for a new agent.
type Create struct {
	Name    string
	Project string
	Role    string
	Task    string // first task; "" gives none
	Runtime string // "exec"
	Command []string
	Env     map[string]string
	Dir     string
	Session string
}

// Project is a set of agents' roles (seed 2). Exec projects are made by
// creating an agent or by a swarm file.
type Project struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Role is a capability profile within a project (seed 2).
type Role struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	ProjectID   string `json:"project_id"`
	ProjectName string `json:"project_name"`
}

// HistoryItem is the seed's Task of an agent.
type HistoryItem struct {
	Message            string       `json:"message"`
	URI                string       `json:"uri,omitempty"`
	NeedsUserAttention bool         `json:"needs_user_attention"`
	CreatedAt          time.Time    `json:"created_at"`
	TaskID             string       `json:"task_id"`
	Status             swarm.Status `json:"status"`
}

// Event is what a runtime reports about a running prompt.
type Event struct {
	Type       string // message, log, tool_request, tool_result, usage, attention, result
	Text       string
	Level      string
	CallID     string
	Tool       string
	Args       core.Raw
	Intent     string
	Risk       string
	Status     string // tool_result: ok|error; result: succeeded|failed
	Output     core.Raw
	Error      string
	Tokens     int64
	CostUSD    float64
	Confidence *float64
}

// ToolAnswer is the judge's word on a tool request.
type ToolAnswer struct {
	CallID   string
	Decision string // approve, deny, abort
	Args     core.Raw
	Reason   string
}

// Runtime starts and keeps agents of one kind. Drivers provide it.
type Runtime interface {
	// Check validates what Create asks for.
	Check(c Create) error
	// Open prepares an agent; events about its health go to notify until ctx
	// ends. It must not run the command before the first prompt.
	Open(ctx context.Context, a Agent, notify func(Health)) (Handle, error)
}

// Health is a change in the state of an agent's runtime.
type Health struct {
	Status   AgentStatus // Starting, Idle, Offline, Failed
	Reason   string
	PID      int
	Restarts int
}

// Prompt is one task for an agent.
type Prompt struct {
	TaskID  string
	Message string
	URI     string
	// Emit takes each event in order; for a tool_request it blocks until the
	// judge has answered or ctx ended.
	Emit func(ctx context.Context, e Event) (ToolAnswer, error)
	Beat func()
}

// Handle is one open agent.
type Handle interface {
	// Prompt runs one task to its end.
	Prompt(ctx context.Context, p Prompt) (swarm.Outcome, error)
	// Interrupt asks the running prompt to stop, then kills after the grace.
	Interrupt()
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	// Stop ends the process; Restart ends it and clears its failures.
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
	// Close ends everything and sweeps what the agent left behind.
	Close() error
}

// Service is the fleet's API.
type Service interface {
	Create(ctx context.Context, by core.Caller, c Create) (Agent, error)
	// Delete works in any state; it is gated by the caller's confirmation.
	Delete(ctx context.Context, by core.Caller, name string) error
	Start(ctx context.Context, by core.Caller, name string) (Agent, error)
	Stop(ctx context.Context, by core.Caller, name string) (Agent, error)
	Restart(ctx context.Context, by core.Caller, name string) (Agent, error)
	Pause(ctx context.Context, by core.Caller, name string) (Agent, error)
	Resume(ctx context.Context, by core.Caller, name string) (Agent, error)
	// Assign gives an idle agent a task; CONFLICT (AgentBusyError) otherwise.
	Assign(ctx context.Context, by core.Caller, name, message, uri string) (swarm.Task, error)
	// CancelTask interrupts the agent's task; it is idle within 5 s.
	CancelTask(ctx context.Context, by core.Caller, name string) (Agent, error)
	Agent(ctx context.Context, tenant, name string) (Agent, error)
	Agents(ctx context.Context, tenant string, f core.Filter) (core.Page[Agent], error)
	History(ctx context.Context, tenant, name string, f core.Filter) (core.Page[HistoryItem], error)
	// Log is the conversation log, newest first (page size 1 by default).
	Log(ctx context.Context, tenant, name string, f core.Filter) (core.Page[swarm.LogLine], error)
	Projects(ctx context.Context, tenant string) ([]Project, error)
	Roles(ctx context.Context, tenant, project string) ([]Role, error)
	// Run opens the agents of every tenant and supervises them until ctx ends.
	Run(ctx context.Context) error
}
