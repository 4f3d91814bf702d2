package cad

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// change has fn change a workflow and its assignments in one commit, and
// returns how it is then.
func (s *workflows) change(ctx context.Context, by core.Caller, id, event string, fn func(*audit.Tx, *Workflow, []*TaskAssignment) error) (Workflow, error) {
	number, err := s.number(ctx, by, id)
	if err != nil {
		return Workflow{}, err
	}
	err = s.c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		w, all, err := s.c.loadWorkflow(tx, number)
		if err != nil {
			return err
		}
		if err := fn(tx, w, all); err != nil {
			return err
		}
		return s.settleIn(tx, w, all, event, nil)
	})
	if err != nil {
		return Workflow{}, audit.Explain("change workflow "+id, err)
	}
	return s.c.Workflow(ctx, by.Tenant, id)
}

func (s *workflows) number(ctx context.Context, by core.Caller, id string) (uint64, error) {
	number, err := core.LocalSeq(core.WorkflowPrefix, by.Tenant, id)
	return number, s.c.foreign(ctx, by, id, err)
}

// RetryWorkflow has failed tasks of a workflow done again, one or with "" all of
// them; what waits for them goes on after. Operations that changed a workspace
// are not repeated: a task goes on where it failed. In the place of an agent
// that was shut down comes a new one of the same role, in the same workspace.
func (c *Controller) RetryWorkflow(ctx context.Context, by core.Caller, id, task string) (Workflow, error) {
	return c.work.change(ctx, by, id, "cad.workflow.retried", func(tx *audit.Tx, w *Workflow, all []*TaskAssignment) error {
		failed := core.Where(all, func(a *TaskAssignment) bool { return a.Status == Failed && (task == "" || a.TaskID == task) })
		if len(failed) == 0 {
			return nothingToRetry(w, all, task)
		}
		if err := c.replaceIn(tx, w, all); err != nil {
			return err
		}
		for _, a := range failed {
			if err := c.againIn(tx, w, a); err != nil {
				return err
			}
		}
		return w.resume(tx)
	})
}

func (w *Workflow) resume(tx *audit.Tx) error {
	w.Cancelled = ""
	if w.State.Final() {
		return w.to(WorkflowRunning, seconds(tx.Now()))
	}
	return nil
}

func nothingToRetry(w *Workflow, all []*TaskAssignment, task string) error {
	if task == "" {
		return core.Errorf(core.Conflict, "workflow %s is %s: no task of it has failed", w.WorkflowID, w.State).With("field", "workflow_id").With("value", w.WorkflowID)
	}
	a, err := taskOf(w, all, task)
	if err != nil {
		return err
	}
	return core.Errorf(core.Conflict, "task %s is %s: only one that failed can be retried", task, a.Status).With("field", "task").With("value", task)
}

// taskIn is the assignment with an id, nil when there is none.
func taskIn(all []*TaskAssignment, id string) *TaskAssignment {
	i := slices.IndexFunc(all, func(a *TaskAssignment) bool { return a.TaskID == id })
	if i < 0 {
		return nil
	}
	return all[i]
}

// taskOf is taskIn of a workflow that must have it.
func taskOf(w *Workflow, all []*TaskAssignment, task string) (*TaskAssignment, error) {
	if a := taskIn(all, task); a != nil {
		return a, nil
	}
	ids := namesOf(all, func(a *TaskAssignment) string { return a.TaskID })
	return nil, core.Invalid("task", task, "a task of workflow "+w.WorkflowID+": "+strings.Join(ids, ", "))
}

// againIn has a failed assignment wait for its turn once more.
func (c *Controller) againIn(tx *audit.Tx, w *Workflow, a *TaskAssignment) error {
	w.again(a.TaskID)
	a.SwarmTask = ""
	if err := a.to(Pending, seconds(tx.Now())); err != nil {
		return err
	}
	return c.saveAssignment(tx, a, record.Event{Type: "cad.assignment.retried"})
}

// replaceIn puts new agents in the places of those that were shut down.
func (c *Controller) replaceIn(tx *audit.Tx, w *Workflow, all []*TaskAssignment) error {
	instead := map[string]string{}
	for _, a := range all {
		underWay := a.SwarmTask != "" && !a.Over()
		if a.Status == Completed || a.Unassigned || underWay {
			continue
		}
		was, err := c.kinds.agent.Need(tx, a.AgentID)
		if err != nil {
			return err
		}
		if was.Status != Terminated {
			continue
		}
		if instead[a.AgentID] == "" {
			if instead[a.AgentID], err = c.successorIn(tx, was, a.WorkspaceID); err != nil {
				return err
			}
			w.Agents = slices.Clone(w.Agents)
			for i := range w.Agents {
				if w.Agents[i].AgentID == a.AgentID {
					w.Agents[i].AgentID = instead[a.AgentID]
				}
			}
		}
		a.AgentID = instead[a.AgentID]
		if err := c.saveAssignment(tx, a, record.Event{Type: "cad.assignment.reassigned"}); err != nil {
			return err
		}
	}
	return nil
}

// successorIn makes an agent of the same role in the place of one that is
// terminated.
func (c *Controller) successorIn(tx *audit.Tx, was *Agent, space string) (string, error) {
	for n := 2; n <= maxRuns; n++ {
		seat := Seat{AgentID: nthID(was.AgentID, n, maxAgentID, map[string]bool{}), RoleName: was.Role, WorkspaceID: space}
		if c.taken(tx.Tenant(), seat.AgentID) {
			continue
		}
		if err := c.seatIn(tx, seat, nil); err != errSeatTaken {
			return seat.AgentID, err
		}
	}
	return "", errSeatTaken
}

// ReassignWorkflow gives a task that is not under way to another agent, whose
// role must allow all of it. It is carried out in the workspace that it was
// begun in; one that failed is done again.
func (c *Controller) ReassignWorkflow(ctx context.Context, by core.Caller, id, task, agent string) (Workflow, error) {
	if _, err := c.member(ctx, by, agent); err != nil {
		return Workflow{}, err
	}
	return c.work.change(ctx, by, id, "cad.workflow.reassigned", func(tx *audit.Tx, w *Workflow, all []*TaskAssignment) error {
		a, err := taskOf(w, all, task)
		if err != nil {
			return err
		}
		if a.Status == Completed || a.Status == InProgress || a.Status == Pending && a.SwarmTask != "" {
			return core.Errorf(core.Conflict, "task %s is %s: only one that failed or has not begun can be reassigned", task, a.Status).With("field", "task").With("value", task)
		}
		if err := c.takeIn(tx, a, agent); err != nil {
			return err
		}
		if a.Status != Failed {
			return c.saveAssignment(tx, a, record.Event{Type: "cad.assignment.reassigned", Detail: map[string]string{"agent_id": agent}})
		}
		if err := c.againIn(tx, w, a); err != nil {
			return err
		}
		return w.resume(tx)
	})
}

// takeIn gives an assignment to an agent that can do it.
func (c *Controller) takeIn(tx *audit.Tx, a *TaskAssignment, agent string) error {
	to, err := c.kinds.agent.Need(tx, agent)
	if err != nil {
		return err
	}
	if to.Status == Terminated {
		return terminated(agent)
	}
	role, err := c.Role(tx.Tenant(), to.Role)
	if err != nil {
		return err
	}
	if err := a.fits(a.TaskID, &role); err != nil {
		return err
	}
	a.AgentID, a.RoleName, a.Unassigned, a.WorkspaceID = agent, to.Role, false, cmp.Or(a.WorkspaceID, to.WorkspaceID)
	return nil
}

// CancelWorkflow ends a workflow: what has not begun does not begin, what runs
// is interrupted. What is completed stays.
func (c *Controller) CancelWorkflow(ctx context.Context, by core.Caller, id, reason string) (Workflow, error) {
	reason = cmp.Or(reason, "cancelled by "+by.Name)
	if err := checkText("reason", reason, maxText); err != nil {
		return Workflow{}, err
	}
	return c.work.change(ctx, by, id, "cad.workflow.cancelled", func(tx *audit.Tx, w *Workflow, all []*TaskAssignment) error {
		if w.State.Final() || w.Cancelled != "" {
			return core.Errorf(core.Conflict, "workflow %s is %s already", id, w.Shown()).With("field", "workflow_id").With("value", id)
		}
		w.Cancelled = reason
		why := FailedResult{Code: "cancelled", Message: reason}
		for _, a := range all {
			if a.Over() || a.SwarmTask != "" {
				continue
			}
			if _, err := c.failIn(tx, a, why); err != nil {
				return err
			}
		}
		return nil
	})
}
