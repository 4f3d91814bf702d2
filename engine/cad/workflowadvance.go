package cad

import (
	"cmp"

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
		a = &TaskAssignment{TaskID: cmp.Or(in.TaskID, t.TaskID), Brief: in.Brief, Status: Pending, TenantID: t.TenantID}
	} else if a, err = s.expected(tx, t, &in); err != nil {
		return err
	}
	a.AgentID, a.WorkspaceID, a.SwarmTask, a.TraceID = in.AgentID, in.WorkspaceID, t.TaskID, t.TraceID
	agent, err := s.c.kinds.agent.Need(tx, a.AgentID)
	if err != nil {
		return err
	}
	a.RoleName, a.WorkspaceID = agent.Role, cmp.Or(a.WorkspaceID, agent.WorkspaceID)
	a.AssignedAt, a.Tries = seconds(tx.Now()), a.Tries+1
	if err := carriers.Put(tx, record.Seq(numberOf(t.TaskID)), a.key()); err != nil {
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

// numberOf is the number in an id of a task or a workflow.
func numberOf(id string) uint64 {
	_, _, n, _ := core.ParseID(id)
	return n
}

// expected is the assignment of a workflow that is just being dispatched. Nobody
// but the engine may give a task for one.
func (s *workflows) expected(tx *audit.Tx, t *task.Task, in *AssignmentInput) (*TaskAssignment, error) {
	number, err := core.LocalSeq(core.WorkflowPrefix, t.TenantID, in.WorkflowID)
	if err != nil {
		return nil, err
	}
	refused := core.Errorf(core.Conflict, "task %s belongs to workflow %s, which gives it when its turn comes; workflow retry and workflow reassign have it done again", in.TaskID, in.WorkflowID).
		With("field", "workflow_id").With("value", in.WorkflowID)
	if tx.By.Door != core.DoorEngine {
		return nil, refused
	}
	all, err := s.c.loadAssignments(tx, number)
	if err != nil {
		return nil, err
	}
	a := taskIn(all, in.TaskID)
	if a == nil || a.Status != Pending || a.SwarmTask != "" || a.Tries != in.Try || a.AgentID != in.AgentID {
		return nil, refused
	}
	return a, nil
}

// followIn brings an assignment to where its task is.
func (s *workflows) followIn(tx *audit.Tx, a *TaskAssignment, t *task.Task) error {
	at, was := seconds(tx.Now()), *a
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
		if err := results.Put(tx, a.key(), result); err != nil {
			return err
		}
		if err := s.c.ForgetMarks(tx, t.TaskID+"/"); err != nil {
			return err
		}
	}
	if s.c.kinds.assignment.Same(&was, a) && result == nil {
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
	return withMembers(result, map[string]any{"operations": answers})
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

// CheckFailed is the error code of an assignment whose operations went well and
// whose check does not hold.
const CheckFailed = "CHECK_FAILED"

// advanceIn has a workflow go on after one of its assignments changed. result
// is what it came to when it is over.
func (s *workflows) advanceIn(tx *audit.Tx, a *TaskAssignment, result core.Raw) error {
	w, all, err := s.c.loadWorkflow(tx, numberOf(a.WorkflowID))
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Index == a.Index {
			all[i] = a
		}
	}
	if a.Result = result; a.Status == Failed {
		if err := s.failedIn(tx, w, all, a, a.Failure()); err != nil {
			return err
		}
	}
	return s.settleIn(tx, w, all, "cad.workflow.advanced", map[string]any{"task_id": a.TaskID, "status": a.Status})
}

// settleIn brings a workflow to where its assignments are, and writes it with
// those that this moves.
func (s *workflows) settleIn(tx *audit.Tx, w *Workflow, all []*TaskAssignment, event string, detail any) error {
	was := w.State
	moved, err := w.advance(all, seconds(tx.Now()))
	if err != nil {
		return err
	}
	for _, m := range moved {
		if err := s.c.saveAssignment(tx, m, record.Event{Type: "cad.assignment." + string(m.Status)}); err != nil {
			return err
		}
	}
	if w.State != was {
		event = "cad.workflow." + string(w.State)
	}
	if was != w.State && w.State.Final() {
		if err := s.announceIn(tx, w); err != nil {
			return err
		}
	}
	if w.State == WorkflowCompleted { // nothing of it is ever done again
		if err := s.c.ForgetMarks(tx, w.WorkflowID+"/"); err != nil {
			return err
		}
	}
	return s.c.saveWorkflow(tx, w, event, detail)
}

// failedIn notes a failure, or has the work that a review rejected done again.
func (s *workflows) failedIn(tx *audit.Tx, w *Workflow, all []*TaskAssignment, a *TaskAssignment, why FailedResult) error {
	if a.Rework != "" && why.Code == CheckFailed && a.Round+1 < a.rounds() && w.Cancelled == "" {
		if work := taskIn(all, a.Rework); work != nil && work.Status == Completed {
			return s.reworkIn(tx, all, a, work, why)
		}
	}
	w.failed(AgentFailure{
		AgentID: a.AgentID, TaskID: a.TaskID, Error: why.Message, ErrorCode: why.Code, Operation: why.Operation, Field: why.Field,
		At: seconds(tx.Now()),
	})
	return nil
}

// reworkIn sends work back to who did it: that one does its rework, then what
// was made of the work is done once more, and then the review.
func (s *workflows) reworkIn(tx *audit.Tx, all []*TaskAssignment, review, work *TaskAssignment, why FailedResult) error {
	at := seconds(tx.Now())
	if _, err := s.c.SendIn(tx, SendMessage{
		From: review.AgentID, To: work.AgentID, Type: Request, Trace: review.TraceID, Task: review.SwarmTask,
		Content: core.MustEncode(map[string]any{
			"request_type": "request_rework", "component_id": work.TaskID, "task_id": work.TaskID, "workspace_id": work.WorkspaceID,
			"reason": why.Message, "measures": why.Measures, "validation_criteria": []string{review.Check}, "round": review.Round + 1,
		}),
	}); err != nil && core.AsError(err).Code == core.Internal {
		return err // one that is refused, because an agent is gone, shows as that agent's task is given
	}
	again := func(a *TaskAssignment, next AssignmentStatus) error {
		a.Round, a.SwarmTask, a.DoneBefore = a.Round+1, "", a.Done
		if err := a.to(next, at); err != nil {
			return err
		}
		return s.c.saveAssignment(tx, a, record.Event{Type: "cad.assignment.rework", Detail: map[string]any{"round": a.Round}})
	}
	rejected := core.MustEncode(why)
	work.Rejected = rejected
	if err := again(work, Pending); err != nil {
		return err
	}
	for _, a := range lyingBetween(all, work.TaskID, review.TaskID) {
		if a.Status != Completed {
			continue
		}
		a.Rejected = rejected
		if err := again(a, Blocked); err != nil {
			return err
		}
	}
	return again(review, Blocked)
}

// lyingBetween are the tasks that wait for one task and that another waits for,
// each directly or through others.
func lyingBetween(all []*TaskAssignment, first, last string) (found []*TaskAssignment) {
	waits := map[string]bool{first: true} // of the tasks looked at
	var look func(id string) bool
	look = func(id string) bool {
		if is, known := waits[id]; known {
			return is
		}
		waits[id] = false
		a := taskIn(all, id)
		if a == nil {
			return false
		}
		for _, dep := range a.Dependencies {
			if look(dep) {
				waits[id] = true
			}
		}
		if waits[id] && id != last {
			found = append(found, a)
		}
		return waits[id]
	}
	look(last)
	return found
}

// announceIn tells the agents of a workflow how it ended.
func (s *workflows) announceIn(tx *audit.Tx, w *Workflow) error {
	from := ""
	for _, seat := range w.Agents {
		if a, err := s.c.kinds.agent.Load(tx, seat.AgentID); err != nil {
			return err
		} else if a != nil && a.Status != Terminated {
			from = seat.AgentID // the last one, which integrates
		}
	}
	if from == "" {
		return nil
	}
	announcement := "task_completed"
	if w.State != WorkflowCompleted {
		announcement = "error_occurred"
	}
	_, err := s.c.SendIn(tx, SendMessage{
		From: from, To: ToAll, Type: Broadcast, Trace: w.TraceID,
		Content: core.MustEncode(map[string]any{
			"announcement": announcement, "workflow_id": w.WorkflowID, "scenario_name": w.ScenarioName,
			"execution_state": w.State, "completion_percentage": w.Completion,
		}),
	})
	if err != nil && core.AsError(err).Code != core.Internal {
		err = nil // nobody else is there to hear it
	}
	return err
}
