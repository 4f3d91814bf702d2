package cad

import (
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// ExecutionState is the model's execution_state of a workflow.
type ExecutionState string

// The states of a workflow.
const (
	Initializing      ExecutionState = "initializing" // nobody has begun yet
	WorkflowRunning   ExecutionState = "running"
	WorkflowCompleted ExecutionState = "completed"
	WorkflowFailed    ExecutionState = "failed"          // nothing came of it
	PartialFailure    ExecutionState = "partial_failure" // some tasks failed, others are completed
)

// ExecutionStates are all of them, in the order screens show them.
func ExecutionStates() []ExecutionState {
	return []ExecutionState{Initializing, WorkflowRunning, WorkflowCompleted, PartialFailure, WorkflowFailed}
}

// Final reports whether a workflow with this state stands still. Only retrying
// or reassigning makes it run again.
func (s ExecutionState) Final() bool {
	return s == WorkflowCompleted || s == WorkflowFailed || s == PartialFailure
}

// executionMoves are the model's, and back to running by retrying.
var executionMoves = map[ExecutionState][]ExecutionState{
	Initializing:    {WorkflowRunning, WorkflowFailed},
	WorkflowRunning: {WorkflowCompleted, WorkflowFailed, PartialFailure},
	WorkflowFailed:  {WorkflowRunning},
	PartialFailure:  {WorkflowRunning},
}

// AgentFailure is one task that failed, as it was when it did.
type AgentFailure struct {
	AgentID string `json:"agent_id"`
	TaskID  string `json:"task_id"`
	Error   string `json:"error"`

	ErrorCode string  `json:"error_code,omitempty"`
	Operation string  `json:"operation,omitempty"` // method that failed
	Field     string  `json:"field,omitempty"`
	At        Seconds `json:"at"`
	Again     bool    `json:"retried,omitzero"` // it was done again since
}

// WorkflowMetrics are a workflow's figures (model 5, metrics).
type WorkflowMetrics struct {
	TotalOperations int     `json:"total_operations"` // that were carried out, well or not
	TotalDuration   float64 `json:"total_duration"`   // s, from start to end
	AgentsUsed      int     `json:"agents_used"`      // that carried something out, or tried to

	Successful int `json:"successful_operations"`
	Failed     int `json:"failed_operations"`
	Tasks      int `json:"total_tasks"`
	Completed  int `json:"completed_tasks"`
	FailedNow  int `json:"failed_tasks"`
	Rounds     int `json:"rework_rounds"`
	Parallel   int `json:"max_parallel_agents"` // how many worked at the same time at most
}

// Workflow is one execution of a scenario or of a decomposed goal (model 5,
// WorkflowExecution). A record is never modified.
type Workflow struct {
	WorkflowID   string `json:"workflow_id"`
	ScenarioName string `json:"scenario_name"`
	// Assignments are filled in when one workflow is read, not by lists.
	Assignments []TaskAssignment `json:"task_assignments"`
	// Waits says what people have to do for it to go on; "" for nothing. It is
	// filled in with the assignments.
	Waits       string          `json:"waits_for,omitempty"`
	State       ExecutionState  `json:"execution_state"`
	Completion  float64         `json:"completion_percentage"` // 0-100
	Failures    []AgentFailure  `json:"agent_failures"`        // the newest 100
	StartedAt   Seconds         `json:"started_at,omitzero"`
	CompletedAt Seconds         `json:"completed_at,omitzero"`
	Metrics     WorkflowMetrics `json:"metrics"`

	TenantID  string         `json:"tenant_id"`
	Goal      string         `json:"goal,omitempty"` // of one that was decomposed
	Pattern   Pattern        `json:"workflow_pattern,omitempty"`
	Agents    []Seat         `json:"agent_assignments"` // as they are called in this run
	Directory string         `json:"directory,omitempty"`
	Kernel    string         `json:"kernel,omitempty"`
	SessionID string         `json:"session_id,omitempty"`
	TraceID   string         `json:"trace_id"`
	CreatedAt Seconds        `json:"created_at"`
	CreatedBy string         `json:"created_by,omitempty"`
	ByKind    core.ActorKind `json:"created_kind,omitempty"`
	Cancelled string         `json:"cancelled,omitempty"` // why, once it was
	Number    uint64         `json:"number"`
	AuditSeq  uint64         `json:"audit_seq,omitzero"`
}

// maxFailures bounds what a workflow remembers of its failures.
const maxFailures = 100

func (w *Workflow) to(next ExecutionState, at Seconds) error {
	if !slices.Contains(executionMoves[w.State], next) {
		return core.Errorf(core.Conflict, "workflow %s is %s: it can't become %s", w.WorkflowID, w.State, next).With("field", "execution_state").With("value", string(next))
	}
	w.State, w.CompletedAt = next, 0
	switch {
	case next == WorkflowRunning && w.StartedAt == 0:
		w.StartedAt = at
	case next.Final():
		w.CompletedAt = at
		if w.StartedAt != 0 { // one that nobody began may be cancelled
			w.Metrics.TotalDuration = float64(at - w.StartedAt)
		}
	}
	return nil
}

// advance brings a workflow to where its assignments are: what waited for
// one that is completed may begin, and when nothing can go on any more it ends.
// The assignments that changed are returned.
func (w *Workflow) advance(all []*TaskAssignment, at Seconds) (moved []*TaskAssignment, err error) {
	by := map[string]*TaskAssignment{}
	for _, a := range all {
		by[a.TaskID] = a
	}
	ready := func(a *TaskAssignment) bool {
		return !slices.ContainsFunc(a.Dependencies, func(id string) bool { return by[id] == nil || by[id].Status != Completed })
	}
	for _, a := range all {
		next := a.Status
		switch {
		case a.Status == Blocked && ready(a):
			next = Pending
		case a.Status == Pending && a.SwarmTask == "" && !ready(a):
			next = Blocked
		}
		if next != a.Status {
			if err := a.to(next, at); err != nil {
				return moved, err
			}
			moved = append(moved, a)
		}
	}
	return moved, w.count(all, at)
}

// count sums the assignments up, and ends the workflow when none can go on.
func (w *Workflow) count(all []*TaskAssignment, at Seconds) error {
	m := &w.Metrics
	*m = WorkflowMetrics{TotalDuration: m.TotalDuration, Parallel: m.Parallel, Tasks: len(all)}
	agents := map[string]bool{}
	begun, going, working := 0, 0, 0
	for _, f := range w.Failures { // its task may be another's by now
		if f.Operation != "" || f.ErrorCode == CheckFailed {
			agents[f.AgentID] = true
		}
	}
	for _, a := range all {
		m.Successful, m.Failed = m.Successful+a.Done, m.Failed+a.Failures
		if a.Rework != "" {
			m.Rounds += a.Round
		}
		if a.Tries > 0 {
			begun++
		}
		if a.Done+a.Failures > 0 || a.Status == InProgress || a.Status == Completed {
			agents[a.AgentID] = true
		}
		switch a.Status {
		case Completed:
			m.Completed++
		case Failed:
			m.FailedNow++
		case InProgress:
			working++
			going++
		case Pending:
			going++
		}
	}
	m.TotalOperations, m.AgentsUsed, m.Parallel = m.Successful+m.Failed, len(agents), max(m.Parallel, working)
	w.Completion = 100 * float64(m.Completed) / float64(max(1, len(all)))
	if begun > 0 && w.State == Initializing {
		if err := w.to(WorkflowRunning, at); err != nil {
			return err
		}
	}
	if going > 0 || w.State.Final() || w.State == Initializing && m.FailedNow == 0 {
		return nil
	}
	switch {
	case m.Completed == len(all):
		return w.to(WorkflowCompleted, at)
	case m.Completed > 0:
		return w.to(PartialFailure, at)
	}
	return w.to(WorkflowFailed, at)
}

func (w *Workflow) failed(f AgentFailure) {
	w.Failures = newest(append(slices.Clip(w.Failures), f), maxFailures)
}

// again marks the failures of a task as dealt with.
func (w *Workflow) again(task string) {
	w.Failures = slices.Clone(w.Failures)
	for i := range w.Failures {
		if w.Failures[i].TaskID == task {
			w.Failures[i].Again = true
		}
	}
}

// waits is what people have to do.
func (w *Workflow) waits() string {
	var idle, asked []string
	for i := range w.Assignments {
		switch a := &w.Assignments[i]; {
		case a.Open():
			idle = append(idle, a.TaskID)
		case a.Waiting != "":
			asked = append(asked, a.TaskID+" ("+a.Waiting+")")
		}
	}
	var out []string
	if len(asked) > 0 {
		out = append(out, "an approval for "+strings.Join(asked, ", "))
	}
	if len(idle) > 0 {
		out = append(out, fmt.Sprintf("an agent for %s: cad assign %s/%s AGENT gives a task to one, cad workflow cancel %s drops them",
			strings.Join(idle, ", "), w.WorkflowID, idle[0], w.WorkflowID))
	}
	return strings.Join(out, "; ")
}

// Shown is the state in one line.
func (w *Workflow) Shown() string {
	if w.State == WorkflowCompleted {
		return string(w.State)
	}
	return fmt.Sprintf("%s %.0f%%", w.State, w.Completion)
}
