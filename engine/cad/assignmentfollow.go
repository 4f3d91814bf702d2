package cad

import (
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// Moved implements task.Follower: an assignment's status is that of the task
// that carries it out, and its workflow goes on from there.
func (r assigner) Moved(tx *audit.Tx, t *task.Task, from task.Status) error {
	if from == "" {
		return r.c.work.carriedIn(tx, t)
	}
	a, err := r.c.carriedBy(tx, t.TaskID)
	if err != nil || a == nil || a.SwarmTask != t.TaskID || !a.carried() {
		return err
	}
	return r.c.work.followIn(tx, a, t)
}

// carriedIn ties a new task to its assignment: to one of a workflow whose turn it
// is, or to one of its own.
func (s *workflows) carriedIn(tx *audit.Tx, t *task.Task) error {
	in, err := readAssignment(t.Input)
	if err != nil {
		return err
	}
	var a *TaskAssignment
	if in.WorkflowID == "" {
		a = &TaskAssignment{TaskID: in.TaskID, Brief: in.Brief, Status: Pending, TenantID: t.TenantID}
		if a.TaskID == "" {
			a.TaskID = t.TaskID
		}
	} else if a, err = s.expected(tx, t, &in); err != nil {
		return err
	}
	a.AgentID, a.WorkspaceID, a.SwarmTask, a.TraceID = in.AgentID, in.WorkspaceID, t.TaskID, t.TraceID
	agent, err := s.c.loadAgent(tx, a.AgentID)
	if err != nil {
		return err
	}
	if a.RoleName = agent.Role; a.WorkspaceID == "" {
		a.WorkspaceID = agent.WorkspaceID
	}
	a.AssignedAt, a.Tries = seconds(tx.Now()), a.Tries+1
	if err := carriers.Put(tx, record.Seq(taskNumber(t.TaskID)), a.key()); err != nil {
		return err
	}
	if a.WorkflowID == "" {
		if err := s.c.addAssignment(tx, a, record.Event{Type: "cad.assignment.assigned"}); err != nil {
			return err
		}
	} else if err := s.c.saveAssignment(tx, a, record.Event{Type: "cad.assignment.assigned"}); err != nil {
		return err
	}
	return s.followIn(tx, a, t)
}

func taskNumber(id string) uint64 {
	_, _, n, _ := core.ParseID(id)
	return n
}

// expected is the assignment of a workflow that is just being dispatched.
// Nobody else may give a task for one.
func (s *workflows) expected(tx *audit.Tx, t *task.Task, in *AssignmentInput) (*TaskAssignment, error) {
	number, err := core.LocalSeq(core.WorkflowPrefix, t.TenantID, in.WorkflowID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	given := s.giving == dispatched{place{t.TenantID, number}, in.TaskID, in.Try}
	s.mu.Unlock()
	refused := core.Errorf(core.Conflict, "task %s belongs to workflow %s, which gives it when its turn comes; workflow retry and workflow reassign have it done again", in.TaskID, in.WorkflowID).
		With("field", "workflow_id").With("value", in.WorkflowID)
	if !given {
		return nil, refused
	}
	all, err := s.c.loadAssignments(tx, number)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(a *TaskAssignment) bool { return a.TaskID == in.TaskID })
	if i < 0 || all[i].Status != Pending || all[i].SwarmTask != "" || all[i].Tries != in.Try || all[i].AgentID != in.AgentID {
		return nil, refused
	}
	return all[i], nil
}

// followIn brings an assignment to where its task is.
func (s *workflows) followIn(tx *audit.Tx, a *TaskAssignment, t *task.Task) error {
	at, was := seconds(tx.Now()), a.audited()
	a.Waiting = ""
	if t.Waiting != "" {
		a.Waiting = t.ApprovalID
	}
	var result core.Raw
	next := a.Status
	switch {
	case t.Status == task.Queued && a.Status == InProgress:
		next = Pending
	case t.Status == task.Running && a.Status == Pending:
		next = InProgress
	case t.Status.Terminal():
		r, err := s.c.opt.Tasks.ResultIn(tx, t.TaskID)
		if err != nil {
			return err
		}
		if next, result = a.ended(&r); a.Status == Pending && next == Completed { // resumed and over in one commit
			if err := a.to(InProgress, at); err != nil {
				return err
			}
		}
	}
	if next != a.Status {
		if err := a.to(next, at); err != nil {
			return err
		}
	}
	if result != nil {
		var err error
		if result, err = a.keptIn(tx, result); err != nil {
			return err
		}
		if err := setResult(tx, a, result); err != nil {
			return err
		}
		if err := s.c.ForgetMarks(tx, t.TaskID+"/"); err != nil {
			return err
		}
	}
	if a.audited() == was && result == nil {
		return nil
	}
	if err := s.c.saveAssignment(tx, a, record.Event{Type: "cad.assignment." + string(a.Status)}); err != nil || a.WorkflowID == "" {
		return err
	}
	return s.advanceIn(tx, a, result)
}

// keptIn is the result of an assignment with the answers of its earlier rounds,
// which a failure must not lose: trying again may refer to them.
func (a *TaskAssignment) keptIn(tx *audit.Tx, result core.Raw) (core.Raw, error) {
	if a.Status != Failed || a.Round == 0 {
		return result, nil
	}
	before := *a
	if err := before.complete(tx); err != nil {
		return nil, err
	}
	answers := memberOf(before.Result, "operations")
	if answers == nil {
		return result, nil
	}
	return withMembers(result, []string{"operations"}, []core.Raw{answers})
}

// ended is what a task's result makes of its assignment.
func (a *TaskAssignment) ended(r *task.Result) (AssignmentStatus, core.Raw) {
	if r.Status == task.Succeeded {
		var out outcome
		if core.DecodeStored(r.Output, &out) == nil {
			a.Done = a.DoneBefore + out.Done
		}
		return Completed, r.Output
	}
	e := FailedResult{Code: string(r.Status), Message: "the task ended " + string(r.Status)}
	if r.Error != nil {
		e = FailedResult{Code: r.Error.Code, Message: r.Error.Message}
		var d FailedResult
		if len(r.Error.Details) > 0 && core.DecodeStored(r.Error.Details, &d) == nil {
			d.Code, d.Message = e.Code, e.Message
			e = d
		}
	}
	a.Done = max(a.Done, a.DoneBefore+e.Done)
	if e.Operation != "" {
		a.Failures++
	}
	return Failed, core.MustEncode(map[string]FailedResult{"error": e})
}

// FailedResult is the error of a failed assignment.
type FailedResult struct {
	Code       string    `json:"error_code"` // ROLE_VIOLATION, ENTITY_NOT_FOUND, CHECK_FAILED …
	Message    string    `json:"message"`
	Operation  string    `json:"operation,omitempty"` // method that failed
	Index      int       `json:"index,omitzero"`      // its place among the operations, from 0
	Field      string    `json:"field,omitempty"`
	Suggestion string    `json:"suggestion,omitempty"`
	Measures   []Measure `json:"measures,omitempty"` // that a check did not accept
	DecisionID string    `json:"decision_id,omitempty"`
	Done       int       `json:"operations_done,omitzero"`
}
