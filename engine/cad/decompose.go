package cad

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
)

// Decompose asks for assignments that reach a goal (controller operation
// decompose_task).
type Decompose struct {
	Goal string // 1-1000 characters
	// Agent is an agent of the fleet that is asked; "" uses the built-in templates.
	Agent string
	// Run starts it at once, with agents and workspaces of its own. Otherwise it
	// waits until its tasks are assigned one by one.
	Run bool
	StartWorkflow
}

// Decompose turns a goal into a workflow: one that runs, or one that waits for
// its tasks to be assigned.
func (c *Controller) Decompose(ctx context.Context, by core.Caller, d Decompose) (Workflow, error) {
	if err := checkText("goal", d.Goal, maxText); err != nil {
		return Workflow{}, err
	}
	if err := c.checkStart(ctx, by, d.StartWorkflow); err != nil {
		return Workflow{}, err
	}
	roles := finderOf(c.Roles(by.Tenant))
	var s Scenario
	var err error
	if d.Agent == "" {
		s, err = planFor(d.Goal)
	} else {
		s, err = c.planBy(ctx, by, d, roles)
	}
	if err != nil {
		return Workflow{}, err
	}
	s, found := s.check(roles)
	if err := found.err(); err != nil {
		return Workflow{}, err
	}
	if d.Run {
		return c.work.start(ctx, by, s, d.StartWorkflow, d.Goal)
	}
	return c.work.plan(ctx, by, s, d.StartWorkflow, d.Goal)
}

// plan keeps a decomposed goal whose tasks nobody has been given yet. Who it
// names are suggestions.
func (s *workflows) plan(ctx context.Context, by core.Caller, sc Scenario, opt StartWorkflow, goal string) (Workflow, error) {
	var w Workflow
	err := s.c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		w = s.newWorkflow(tx, by, sc, opt, goal)
		w.Agents = sc.Agents
		all := w.assignments(sc, func(agent string) Seat { return *sc.seat(agent) })
		for _, a := range all {
			a.Unassigned, a.WorkspaceID = true, ""
			if err := s.c.addAssignment(tx, a, record.Event{Type: "cad.assignment.created"}); err != nil {
				return err
			}
		}
		return s.settleIn(tx, &w, all, "cad.workflow.created", map[string]any{"scenario_name": sc.Name, "agents": sc.Agents})
	})
	if err != nil {
		return Workflow{}, audit.Explain("keep the tasks of a goal", err)
	}
	return s.c.Workflow(ctx, by.Tenant, w.WorkflowID)
}

// AssignTask gives a task of a decomposed goal to an agent (controller operation
// assign_task): its id, WORKFLOW/ID, or the id alone for the newest. It begins
// once its dependencies are completed.
func (c *Controller) AssignTask(ctx context.Context, by core.Caller, task, agent string) (TaskAssignment, error) {
	if _, err := c.member(ctx, by, agent); err != nil {
		return TaskAssignment{}, err
	}
	id, name, ok := strings.Cut(task, "/")
	if !ok {
		var err error
		if id, name, err = c.openTask(ctx, by.Tenant, task); err != nil {
			return TaskAssignment{}, err
		}
	}
	flow, err := c.work.change(ctx, by, id, "cad.workflow.assigned", func(tx *audit.Tx, w *Workflow, all []*TaskAssignment) error {
		a, err := taskOf(w, all, name)
		if err != nil {
			return err
		}
		if !a.Unassigned {
			return core.Errorf(core.Conflict, "task %s of workflow %s is agent %s's and %s; workflow reassign gives it to another", name, id, a.AgentID, a.Status).With("field", "task").With("value", task)
		}
		if err := a.complete(tx); err != nil {
			return err
		}
		a.Unassigned = false
		if err := c.takeIn(tx, a, agent); err != nil {
			return err
		}
		if !slices.ContainsFunc(w.Agents, func(s Seat) bool { return s.AgentID == agent }) {
			w.Agents = append(slices.Clip(w.Agents), Seat{AgentID: agent, RoleName: a.RoleName, WorkspaceID: a.WorkspaceID})
		}
		if w.State == Initializing {
			if err := w.to(WorkflowRunning, seconds(tx.Now())); err != nil {
				return err
			}
		}
		return c.saveAssignment(tx, a, record.Event{Type: "cad.assignment.given", Detail: map[string]string{"agent_id": agent}})
	})
	if err != nil {
		return TaskAssignment{}, err
	}
	return *first(flow.Assignments, func(a *TaskAssignment) bool { return a.TaskID == name }), nil
}

// openTask finds the newest task of an id that nobody has been given.
func (c *Controller) openTask(ctx context.Context, tenant, task string) (workflow, name string, err error) {
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return c.kinds.workflow.Along(tx, bLive, live, func(w *Workflow) error {
			all, err := c.loadAssignments(tx, w.Number)
			for _, a := range all {
				if a.TaskID == task && a.Unassigned {
					workflow = a.WorkflowID
				}
			}
			return err
		})
	})
	switch {
	case workflow != "" && len(core.DamagedIn(err)) > 0: // of others
		err = nil
	case err == nil && workflow == "":
		err = core.Errorf(core.NotFound, "task %q: no task of a decomposed goal with this id waits to be assigned; cad decompose makes them", core.ClipTo(task, 80)).With("field", "task").With("value", core.ClipTo(task, 80))
	}
	return workflow, task, audit.Explain("find task "+task, err)
}

// Assign gives an agent an assignment of its own, which belongs to no workflow
// (controller operation assign_task): an AssignmentInput, the agent's id filled
// in.
func (c *Controller) Assign(ctx context.Context, by core.Caller, agent string, input core.Raw) (TaskAssignment, error) {
	if err := core.CheckObject("task", input, core.MaxInput); err != nil {
		return TaskAssignment{}, err
	}
	input, err := withMembers(input, map[string]any{"agent_id": agent})
	if err != nil {
		return TaskAssignment{}, fmt.Errorf("task: %w", err)
	}
	t, err := c.opt.Swarm.Dispatch(ctx, by, swarm.Dispatch{Kind: KindAssignment, Input: input})
	if err != nil {
		return TaskAssignment{}, err
	}
	return c.Assignment(ctx, by.Tenant, t.TaskID)
}
