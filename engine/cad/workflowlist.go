package cad

import (
	"context"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Workflow returns a workflow with all its assignments, their operations and
// their results.
func (c *Controller) Workflow(ctx context.Context, tenant, id string) (Workflow, error) {
	return c.readWorkflow(ctx, tenant, id, true)
}

// Progress returns a workflow with its assignments, but not their operations and
// results: what a screen or a wait looks at again and again.
func (c *Controller) Progress(ctx context.Context, tenant, id string) (Workflow, error) {
	return c.readWorkflow(ctx, tenant, id, false)
}

func (c *Controller) readWorkflow(ctx context.Context, tenant, id string, whole bool) (Workflow, error) {
	number, err := c.work.number(ctx, reader(tenant), id)
	if err != nil {
		return Workflow{}, err
	}
	var out Workflow
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		w, err := c.loadWorkflow(tx, number)
		if err != nil {
			return err
		}
		all, err := c.loadAssignments(tx, number)
		if err != nil {
			return err
		}
		out = *w
		out.Assignments = make([]TaskAssignment, len(all))
		for i, a := range all {
			if whole {
				if err := a.complete(tx); err != nil {
					return err
				}
			}
			out.Assignments[i] = *a
		}
		return nil
	})
	out.Waits = out.waits()
	if out.State == WorkflowRunning {
		out.Metrics.TotalDuration = max(0, float64(seconds(c.ledger.Clock().Now())-out.StartedAt))
	}
	return out, explain("read workflow "+id, err)
}

// Workflows lists workflows, newest first, without their assignments. Status is
// one of ExecutionStates, Agent an agent of it, Kind a scenario; Match looks into
// id, scenario and goal.
func (c *Controller) Workflows(ctx context.Context, tenant string, f core.Filter) (core.Page[Workflow], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[Workflow]{}, err
	}
	if f.Status != "" && !slices.Contains(ExecutionStates(), ExecutionState(f.Status)) {
		return core.Page[Workflow]{}, core.Invalid("status", f.Status, "initializing, running, completed, partial_failure, failed")
	}
	q := record.Query[Workflow]{Filter: core.Filter{Page: f.Page, Size: f.Size}}
	if f.Narrows() {
		q.Match = func(w *Workflow) (bool, error) { return w.fits(f), nil }
	}
	var page core.Page[Workflow]
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		page, err = c.kinds.workflow.Page(ctx, tx, q)
		return err
	})
	return page, explain("list the workflows", err)
}

func (w *Workflow) fits(f core.Filter) bool {
	return core.Wants(f.Status, string(w.State)) && core.Wants(f.Kind, w.ScenarioName) && core.Wants(f.Session, w.SessionID) && core.Wants(f.Trace, w.TraceID) && f.Task == "" &&
		(f.Agent == "" || slices.ContainsFunc(w.Agents, func(s Seat) bool { return s.AgentID == f.Agent })) &&
		f.Within(w.CreatedAt.Time()) && f.Finds(w.WorkflowID, w.ScenarioName, w.Goal)
}

// Assignment returns the assignment that a task of the queue carries out.
func (c *Controller) Assignment(ctx context.Context, tenant, task string) (TaskAssignment, error) {
	if _, err := core.LocalSeq(core.TaskPrefix, tenant, task); err != nil {
		return TaskAssignment{}, c.foreign(ctx, reader(tenant), task, err)
	}
	var out TaskAssignment
	err := c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		a, err := c.carriedBy(tx, task)
		if err != nil {
			return err
		}
		if a == nil {
			return core.Missing("assignment", task)
		}
		err = a.complete(tx)
		out = *a
		return err
	})
	return out, explain("read the assignment of task "+task, err)
}
