package cad

import (
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// CheckFailed is the error code of an assignment whose operations went well and
// whose check does not hold.
const CheckFailed = "CHECK_FAILED"

// advanceIn has a workflow go on after one of its assignments changed. result
// is what it came to when it is over.
func (s *workflows) advanceIn(tx *audit.Tx, a *TaskAssignment, result core.Raw) error {
	number := workflowNumber(a.WorkflowID)
	w, err := s.c.loadWorkflow(tx, number)
	if err != nil {
		return err
	}
	all, err := s.c.loadAssignments(tx, number)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Index == a.Index {
			all[i] = a
		}
	}
	if a.Status == Failed {
		if err := s.failedIn(tx, w, all, a, result); err != nil {
			return err
		}
	}
	return s.settleIn(tx, w, all, "cad.workflow.advanced", map[string]any{"task_id": a.TaskID, "status": a.Status})
}

func workflowNumber(id string) uint64 {
	_, _, n, _ := core.ParseID(id)
	return n
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
func (s *workflows) failedIn(tx *audit.Tx, w *Workflow, all []*TaskAssignment, a *TaskAssignment, result core.Raw) error {
	var r struct {
		Error FailedResult `json:"error"`
	}
	if err := core.DecodeStored(result, &r); err != nil {
		return fmt.Errorf("decode the result of task %s: %w", a.TaskID, err)
	}
	if a.Rework != "" && r.Error.Code == CheckFailed && a.Round+1 < a.rounds() && w.Cancelled == "" {
		i := slices.IndexFunc(all, func(t *TaskAssignment) bool { return t.TaskID == a.Rework })
		if i >= 0 && all[i].Status == Completed {
			return s.reworkIn(tx, all, a, all[i], r.Error)
		}
	}
	w.failed(AgentFailure{
		AgentID: a.AgentID, TaskID: a.TaskID, Error: r.Error.Message, ErrorCode: r.Error.Code,
		Operation: r.Error.Operation, Field: r.Error.Field, At: seconds(tx.Now()),
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
		i := slices.IndexFunc(all, func(a *TaskAssignment) bool { return a.TaskID == id })
		if i < 0 {
			return false
		}
		for _, dep := range all[i].Dependencies {
			if look(dep) {
				waits[id] = true
			}
		}
		if waits[id] && id != last {
			found = append(found, all[i])
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
