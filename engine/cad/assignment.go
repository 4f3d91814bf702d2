package cad

import (
	"fmt"
	"slices"

	"swarmdeck/engine/core"
)

// AssignmentStatus is the seed's status of a TaskAssignment.
type AssignmentStatus string

// The statuses of an assignment.
const (
	Pending    AssignmentStatus = "pending"
	InProgress AssignmentStatus = "in_progress"
	Completed  AssignmentStatus = "completed"
	Failed     AssignmentStatus = "failed"
	Blocked    AssignmentStatus = "blocked" // a dependency is not completed
)

// AssignmentStatuses are all of them, in the order screens show them.
func AssignmentStatuses() []AssignmentStatus {
	return []AssignmentStatus{Pending, Blocked, InProgress, Completed, Failed}
}

// assignmentMoves are the seed's transitions, and three that retrying and
// reworking add: what failed or is completed may be done once more.
var assignmentMoves = map[AssignmentStatus][]AssignmentStatus{
	Pending:    {InProgress, Blocked, Failed},
	Blocked:    {Pending, Failed},
	InProgress: {Completed, Failed, Pending}, // pending: its worker died, it is queued again
	Failed:     {Pending, Blocked},           // retry
	Completed:  {Pending, Blocked},           // rework
}

// Open says whether nobody has been given it and somebody still may.
func (a *TaskAssignment) Open() bool {
	return a.Unassigned && (a.Status == Pending || a.Status == Blocked)
}

// Step is one operation of an assignment. References in its params are filled
// in from the answers of earlier ones: ${ID.field} of the same assignment,
// ${tasks.TASK.ID.field} of one that it depends on, ${tasks.TASK.workspace_id}
// for where that one built, ${agent.workspace_id} for where this one does, and
// ${rework.…} in what is done again.
type Step struct {
	ID     string   `json:"id,omitempty"`
	Method string   `json:"method"`
	Params core.Raw `json:"params,omitzero"` // JSON object
}

// Brief is what an assignment is to do, whoever does it.
type Brief struct {
	Description string `json:"description"`
	// RequiredOperations are methods that the agent's role must allow. Those of
	// the operations are among them, named or not.
	RequiredOperations []string `json:"required_operations"`
	Dependencies       []string `json:"dependencies"`
	SuccessCriteria    string   `json:"success_criteria"` // prose; Check is what decides
	Operations         []Step   `json:"operations,omitempty"`
	// Check is a CEL expression that must hold at the end. Without one all
	// operations have to succeed and every solid has to be closed.
	Check string `json:"check,omitempty"`
	// Worker is the agent of the fleet that does an assignment without operations.
	Worker string `json:"worker,omitempty"`
	// Rework is the task that is done again when Check does not hold, by its
	// ReworkOperations, and then this one, at most MaxRounds times in all. What
	// lies between them is done again too: by its ReworkOperations, or without
	// any by its Operations, which must bear that, as merging and measuring do.
	Rework           string `json:"rework,omitempty"`
	MaxRounds        int    `json:"max_rounds,omitzero"` // 1-10; 0 means 2
	ReworkOperations []Step `json:"rework_operations,omitempty"`
}

// TaskAssignment is one task given to one agent (seed 5, TaskAssignment). A
// record is never modified.
type TaskAssignment struct {
	TaskID  string `json:"task_id"`
	AgentID string `json:"agent_id"` // "" while nobody has it
	Brief
	Status      AssignmentStatus `json:"status"`
	AssignedAt  Seconds          `json:"assigned_at,omitzero"`
	CompletedAt Seconds          `json:"completed_at,omitzero"`
	// Result is {"operations":{ID:answer}, …} of a completed one, and
	// {"error":{…}} of one that failed.
	Result core.Raw `json:"result,omitzero"`

	TenantID    string `json:"tenant_id"`
	WorkflowID  string `json:"workflow_id,omitempty"`
	RoleName    string `json:"role_name,omitempty"` // that it is meant for
	WorkspaceID string `json:"workspace_id,omitempty"`
	SwarmTask   string `json:"swarm_task_id,omitempty"` // the newest task of the queue that carried it out
	TraceID     string `json:"trace_id,omitempty"`
	Round       int    `json:"round,omitzero"` // how often its rework was asked for
	Tries       int    `json:"tries,omitzero"` // how often it was dispatched
	Waiting     string `json:"approval_id,omitempty"`
	Done        int    `json:"operations_done,omitzero"`   // over all rounds
	DoneBefore  int    `json:"operations_before,omitzero"` // of them in earlier rounds
	Failures    int    `json:"operations_failed,omitzero"` // over all tries
	Index       int    `json:"index"`                      // place in its workflow, from 0
	// Unassigned: nobody has been given it yet, AgentID is a suggestion.
	Unassigned bool `json:"unassigned,omitzero"`
	// Rejected is why it is to be done again: what the review found.
	Rejected core.Raw `json:"rejected,omitzero"`
	AuditSeq uint64   `json:"audit_seq,omitzero"`
}

// to moves an assignment to another status.
func (a *TaskAssignment) to(next AssignmentStatus, at Seconds) error {
	if !slices.Contains(assignmentMoves[a.Status], next) {
		return core.Errorf(core.Conflict, "task %s is %s: it can't become %s", a.TaskID, a.Status, next).With("field", "status").With("value", string(next))
	}
	a.Status = next
	a.CompletedAt = 0
	if next == Completed || next == Failed {
		a.CompletedAt, a.Waiting = at, ""
	}
	return nil
}

// over reports whether an assignment has ended, for now.
func (a *TaskAssignment) over() bool { return a.Status == Completed || a.Status == Failed }

// rounds is how often a review may reject.
func (b *Brief) rounds() int {
	if b.MaxRounds == 0 {
		return defaultRounds
	}
	return b.MaxRounds
}

// Steps is how many operations this round has.
func (a *TaskAssignment) Steps() int {
	if a.Round > 0 && len(a.ReworkOperations) > 0 {
		return len(a.ReworkOperations)
	}
	return len(a.Operations)
}

// Failure is why it failed; zero when it has not.
func (a *TaskAssignment) Failure() FailedResult {
	var r struct {
		Error FailedResult `json:"error"`
	}
	if a.Status != Failed || len(a.Result) == 0 || core.DecodeStored(a.Result, &r) != nil {
		return FailedResult{}
	}
	return r.Error
}

// required are all methods that the agent's role must allow, each once.
func (b *Brief) required() []string {
	all := slices.Clone(b.RequiredOperations)
	for _, s := range slices.Concat(b.Operations, b.ReworkOperations) {
		if !slices.Contains(all, s.Method) {
			all = append(all, s.Method)
		}
	}
	return all
}

// fits reports what a role does not allow of an assignment (seed 5: required
// operations must all be in the agent's role).
func (b *Brief) fits(task string, role *RoleTemplate) error {
	for i, op := range b.required() {
		if !role.Allows(op) {
			return core.Errorf(core.InvalidInput, "task %s needs %s, which role %s does not allow; it allows %s",
				task, op, role.Name, listed(role.AllowedOperations)).
				With("error", "ROLE_VIOLATION").With("field", fmt.Sprintf("required_operations[%d]", i)).With("value", op).With("allowed", role.AllowedOperations)
		}
	}
	return nil
}

// auditedAssignment is what the audit log says about an assignment.
type auditedAssignment struct {
	AgentID   string           `json:"agent_id,omitempty"`
	Status    AssignmentStatus `json:"status"`
	Workspace string           `json:"workspace_id,omitempty"`
	SwarmTask string           `json:"swarm_task_id,omitempty"`
	Round     int              `json:"round,omitzero"`
	Tries     int              `json:"tries,omitzero"`
	Waiting   string           `json:"approval_id,omitempty"`
}

func (a *TaskAssignment) audited() auditedAssignment {
	return auditedAssignment{a.AgentID, a.Status, a.WorkspaceID, a.SwarmTask, a.Round, a.Tries, a.Waiting}
}
