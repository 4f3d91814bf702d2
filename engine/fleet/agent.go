// Package fleet keeps agents: who they are, how they are, what they were
// asked and what they said. It supervises their runtimes and carries out
// agent.prompt tasks, with every tool call gated by the judge.
//
// What is durable is the record of each agent (bucket "agent"); an agent's
// process is only ever driven towards what its record says. A status that was
// shown or acknowledged is on disk. After a crash no run is alive: records
// that say otherwise are repaired, and the questions those runs had open are
// voided, before any agent is opened.
package fleet

import (
	"slices"
	"time"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
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

// statuses in the order of an agent's life, for counters and error texts.
var statuses = [...]AgentStatus{Starting, Idle, Busy, Offline, Failed}

// Agent is one agent of the fleet (seed 2).
type Agent struct {
	Name        string      `json:"name"`         // ^[a-zA-Z0-9-]{1,20}$, unique in the tenant
	WorkspaceID string      `json:"workspace_id"` // UUID of the runtime, else the same for the same tenant, runtime, name and directory
	Status      AgentStatus `json:"status"`
	Role        string      `json:"role"`
	Project     string      `json:"project"`
	LastTask    string      `json:"last_task,omitempty"` // the newest task's message, cut at 1000 bytes
	CreatedAt   time.Time   `json:"created_at"`
	UpdatedAt   time.Time   `json:"updated_at"`

	LastTaskID string      `json:"last_task_id,omitempty"` // the newest task it took in hand
	LastStatus task.Status `json:"last_status,omitempty"`  // how that ended; "" while it is not over

	TenantID  string       `json:"tenant_id"`
	Runtime   string       `json:"runtime"` // "exec", "acp", "coder"
	Command   []string     `json:"command,omitempty"`
	Env       secret.Env   `json:"env,omitempty"` // shows references only
	Dir       string       `json:"dir,omitempty"`
	Options   core.Raw     `json:"options,omitempty"` // what its runtime alone understands
	Profile   string       `json:"profile,omitempty"` // how much of the machine its processes reach: reader, worker, open; "" where its runtime has no say
	SessionID string       `json:"session_id,omitempty"`
	Reason    string       `json:"reason,omitempty"`  // why offline or failed
	TaskID    string       `json:"task_id,omitempty"` // while busy
	Paused    bool         `json:"paused,omitzero"`
	Pausing   bool         `json:"pausing,omitzero"`    // asked, not yet acknowledged
	Stopped   bool         `json:"stopped,omitzero"`    // by an operator; stays so until started
	Attention string       `json:"attention,omitempty"` // the agent asks for a person
	Waiting   string       `json:"waiting,omitempty"`   // approval id it waits for, the oldest
	Asked     []string     `json:"asked,omitempty"`     // the others, oldest first
	Stuck     *Stuck       `json:"stuck,omitempty"`     // why it seems to get nowhere
	PID       int          `json:"pid,omitzero"`
	Restarts  int          `json:"restarts,omitzero"`
	Lacks     string       `json:"lacks,omitempty"` // layers of the wall that its newest process went without
	Usage     budget.Usage `json:"usage"`
	LogFrom   uint64       `json:"log_from,omitzero"` // lines of its log stream that belong to an earlier agent of this name
	Reused    bool         `json:"reused,omitzero"`   // an earlier agent of this name had tasks
	Forked    *Origin      `json:"forked,omitempty"`  // where it comes from, of a fork
	AuditSeq  uint64       `json:"audit_seq,omitzero"`
}

// runs reports whether the record names a run or its process.
func (a *Agent) runs() bool { return a.works() || a.PID != 0 }

// works reports whether it names a run.
func (a *Agent) works() bool {
	return a.TaskID != "" || a.Waiting != "" || a.Attention != "" || a.Status == Busy
}

// letGo is for a run that is dead.
func (a *Agent) letGo() {
	a.TaskID, a.Waiting, a.Asked, a.Attention, a.Stuck, a.PID = "", "", nil, "", nil, 0
}

// asks notes that it waits for one more approval.
func (a *Agent) asks(approval string) {
	if a.Waiting == "" {
		a.Waiting = approval
		return
	}
	a.Asked = append(slices.Clone(a.Asked), approval) // other copies of the record share the list
}

// answered notes that it no longer waits for an approval, and whether it did.
func (a *Agent) answered(approval string) bool {
	waits := slices.DeleteFunc(append([]string{a.Waiting}, a.Asked...), func(id string) bool { return id == approval })
	if approval == "" || len(waits) > len(a.Asked) {
		return false
	}
	a.Waiting, a.Asked = "", nil
	for _, id := range waits {
		a.asks(id)
	}
	return true
}

// State is the common word for any runtime's status: starting, idle, working,
// waiting for you, stuck, pausing, paused, offline, failed.
func (a Agent) State() string {
	switch {
	case a.Waiting != "" || a.Attention != "":
		return "waiting for you"
	case a.Pausing:
		return "pausing"
	case a.Paused:
		return "paused"
	case a.Stuck != nil && a.Status == Busy:
		return "stuck"
	case a.Status == Busy:
		return "working"
	}
	return string(a.Status)
}

// Origin is where a fork comes from.
type Origin struct {
	AgentID   string    `json:"agent_id"`
	Branch    string    `json:"branch"`    // the fork's own
	EventID   string    `json:"event_id"`  // of the record of that agent: it goes on from there
	Kind      string    `json:"kind"`      // of that event
	Continued string    `json:"continued"` // "record": what was said until then was told from the record
	Intent    string    `json:"intent_id"`
	Since     time.Time `json:"since,omitzero"` // what is older was said by another agent of that name
	Alone     bool      `json:"alone,omitzero"` // only that event's run is its past
	Notes     []string  `json:"notes,omitempty"`
}

// Create asks for a new agent.
type Create struct {
	Name    string
	Project string // 1-64 printable characters
	Role    string // the same; "" means "coder" (seed 2)
	Task    string // first task; "" gives none
	Runtime string // "" means "exec"
	Command []string
	Env     map[string]string
	Dir     string
	Options core.Raw // JSON object for the runtime; nil means {}
	Profile string   // reader, worker or open; "" is the runtime's default
	Session string   // session of the first task
	Forked  *Origin  // of a fork
}

// Project is a set of agents' roles (seed 2). It is made by creating an agent,
// by a swarm file, or learned from the server of a Catalog.
type Project struct {
	ID          string `json:"id"` // UUID of the catalog, else derived from tenant and name
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Role is a capability profile within a project (seed 2).
type Role struct {
	ID          string `json:"id"` // UUID of the catalog, else derived from tenant, project and name
	Name        string `json:"name"`
	ProjectID   string `json:"project_id"`
	ProjectName string `json:"project_name"`
}

// HistoryItem is the seed's Task of an agent.
type HistoryItem struct {
	Message            string      `json:"message"`
	URI                string      `json:"uri,omitempty"`
	NeedsUserAttention bool        `json:"needs_user_attention"` // it asked for a person, or waits for one
	CreatedAt          time.Time   `json:"created_at"`
	TaskID             string      `json:"task_id"`
	Status             task.Status `json:"status"`
}
