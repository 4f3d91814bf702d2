package cad

import (
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

// Status is the seed's agent status.
type Status string

// The statuses of an agent.
const (
	Idle       Status = "idle"
	Working    Status = "working"
	Failing    Status = "error" // its newest operation failed; the next one clears it
	Terminated Status = "terminated"
)

// Statuses are all of them, in the order screens show them.
func Statuses() []Status { return []Status{Idle, Working, Failing, Terminated} }

// transitions are the seed's. An error is cleared as the next operation begins.
var transitions = map[Status][]Status{
	Idle:    {Working, Terminated},
	Working: {Idle, Failing, Terminated},
	Failing: {Idle, Terminated},
}

// Agent is one CAD agent (seed 5, Agent). A record is never modified.
type Agent struct {
	AgentID         string   `json:"agent_id"`
	Role            string   `json:"role"` // name of its RoleTemplate
	WorkspaceID     string   `json:"workspace_id"`
	OperationCount  int      `json:"operation_count"` // attempted
	SuccessCount    int      `json:"success_count"`
	ErrorCount      int      `json:"error_count"`
	CreatedEntities []string `json:"created_entities"` // the newest 256
	ErrorLog        []string `json:"error_log"`        // the newest 20, the newest last
	Status          Status   `json:"status"`
	CreatedAt       Seconds  `json:"created_at"`
	LastActive      Seconds  `json:"last_active"`

	TenantID       string `json:"tenant_id"`
	CreatedCount   int    `json:"created_count"`   // entities made, those that created_entities has no room for too
	RoleViolations int    `json:"role_violations"` // operations that its role does not allow
	// ViolationsInRow are those since an operation that it was allowed. From 3
	// on the agent is shown as one that keeps trying.
	ViolationsInRow int     `json:"violations_in_row,omitzero"`
	Operation       string  `json:"operation,omitempty"`   // method under way
	TaskID          string  `json:"task_id,omitempty"`     // that the operation under way belongs to
	Waiting         string  `json:"approval_id,omitempty"` // approval that it waits for
	CreatedBy       string  `json:"created_by,omitempty"`
	TerminatedAt    Seconds `json:"terminated_at,omitzero"`
	AuditSeq        uint64  `json:"audit_seq,omitzero"`
}

// Stubborn is from how many violations in a row an agent is shown as one that
// keeps trying what its role forbids.
const Stubborn = 3

// Shown is the status in the words that all agents share: idle, working,
// waiting for you, failed, offline.
func (a *Agent) Shown() string {
	switch {
	case a.Status == Terminated:
		return "offline"
	case a.Waiting != "":
		return "waiting for you"
	case a.Status == Failing:
		return "failed"
	}
	return string(a.Status)
}

// to moves an agent to another status (seed 5, State Transitions).
func (a *Agent) to(next Status) error {
	if can := transitions[a.Status]; !slices.Contains(can, next) {
		may := "that is final"
		if len(can) > 0 {
			may = fmt.Sprintf("only %v", can)
		}
		return core.Errorf(core.Conflict, "agent %s is %s: it can't become %s; %s", a.AgentID, a.Status, next, may).With("field", "status").With("value", string(next))
	}
	a.Status = next
	return nil
}

// Bounds of what an agent's record keeps.
const (
	maxCreated   = 256
	maxErrors    = 20
	maxErrorText = 500 // bytes of one entry of the error log
	maxAgentID   = 64  // bytes
)

var agentPattern = core.Pattern(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// checkAgentID reports a name that no agent can have.
func checkAgentID(field, id string) error {
	if slices.Contains(bus.Components(), id) {
		return core.Invalid(field, id, "any but "+strings.Join(bus.Components(), ", ")+", which stand for the engine's own in messages")
	}
	if !agentPattern().MatchString(id) {
		return core.Invalid(field, id, "1-64 of A-Z a-z 0-9 _ . -, a letter or _ first")
	}
	return nil
}

// CreateAgent asks for a new agent (controller operation create_agent).
type CreateAgent struct {
	AgentID     string `json:"agent_id"`
	RoleName    string `json:"role_name"`
	WorkspaceID string `json:"workspace_id"`
	// Workspace, when set, makes the workspace if there is none of that id, in
	// the same transaction; its WorkspaceID is left empty.
	Workspace *CreateWorkspace `json:"workspace,omitzero"`
}

// auditedAgent is what the audit log says about an agent.
type auditedAgent struct {
	Role        string `json:"role"`
	WorkspaceID string `json:"workspace_id"`
	Status      Status `json:"status"`
	Operations  int    `json:"operation_count"`
	Successes   int    `json:"success_count"`
	Errors      int    `json:"error_count"`
	Violations  int    `json:"role_violations,omitzero"`
	Waiting     string `json:"approval_id,omitempty"`
}

func (a *Agent) audited() auditedAgent {
	return auditedAgent{a.Role, a.WorkspaceID, a.Status, a.OperationCount, a.SuccessCount, a.ErrorCount, a.RoleViolations, a.Waiting}
}

// failed notes a failure in the error log.
func (a *Agent) failed(text string) {
	a.ErrorCount++
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	a.ErrorLog = newest(append(slices.Clip(a.ErrorLog), text), maxErrors)
}

// newest are the last n of a list.
func newest(list []string, n int) []string { return list[max(0, len(list)-n):] }
