package cad

import (
	"context"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// An assignment lies under its workflow's number and its place there; one without
// a workflow under 0 and its task's number. What is large of it is kept apart, by
// the same key, so that looking at a workflow reads none of it.
const (
	bLive store.Bucket = "cad.live" // workflows that run, by the word live

	stepsOf  record.Rows[steps]    = "cad.steps"
	results  record.Rows[core.Raw] = "cad.result"  // of those that are over
	carriers record.Rows[[]byte]   = "cad.carrier" // number of a task of the queue → key of its assignment
)

const live = "live"

func (c *Controller) workflowKind() record.Table[Workflow] {
	return &record.Kind[*Workflow]{
		Noun: "workflow", Subject: "cad.workflow", Bucket: "cad.workflow", Ledger: c.ledger,
		ID: func(w *Workflow) string { return w.WorkflowID }, Number: record.Numbers(core.WorkflowPrefix), Name: record.NumberedName(core.WorkflowPrefix),
		Says: "execution_state metrics cancelled", Fits: (*Workflow).fits, Statuses: core.Strings(ExecutionStates()...),
		Indexes: []record.Index[*Workflow]{{Bucket: bLive, Word: func(w *Workflow) string {
			if w.State == Initializing || w.State == WorkflowRunning {
				return live
			}
			return ""
		}}},
		Follow: func(tenant, _ string, w *Workflow) { c.work.look(place{tenant, w.Number}) },
	}
}

func (c *Controller) assignmentKind() record.Table[TaskAssignment] {
	return &record.Kind[*TaskAssignment]{
		Noun: "assignment", Subject: "cad.assignment", Bucket: "cad.assignment", Ledger: c.ledger,
		ID: (*TaskAssignment).name, Place: (*TaskAssignment).key,
		Name: func(tenant string, key []byte) string {
			k := record.Parts(key)
			if workflow := k.Seq(); workflow > 0 {
				return fmt.Sprintf("%s, task %d", core.NewID(core.WorkflowPrefix, tenant, workflow), k.Seq()+1)
			}
			return core.NewID(core.TaskPrefix, tenant, k.Seq())
		},
		Says: "agent_id status workspace_id swarm_task_id round tries approval_id",
	}
}

// steps is what an assignment carries out: kept apart, so that looking at a
// workflow reads no operations.
type steps struct {
	Operations       []Step `json:"operations,omitempty"`
	ReworkOperations []Step `json:"rework_operations,omitempty"`
}

func (a *TaskAssignment) key() record.Key {
	if a.WorkflowID == "" {
		return record.Seq(0).Seq(numberOf(a.SwarmTask))
	}
	return record.Seq(numberOf(a.WorkflowID)).Seq(uint64(a.Index))
}

// name is what the audit log calls an assignment.
func (a *TaskAssignment) name() string {
	if a.WorkflowID == "" {
		return a.SwarmTask
	}
	return a.WorkflowID + "/" + a.TaskID
}

// loadWorkflow reads a workflow and its assignments, as loadAssignments does.
func (c *Controller) loadWorkflow(tx store.Tx, number uint64) (w *Workflow, all []*TaskAssignment, err error) {
	if w, err = c.kinds.workflow.Need(tx, core.NewID(core.WorkflowPrefix, tx.Tenant(), number)); err == nil {
		all, err = c.loadAssignments(tx, number)
	}
	return w, all, err
}

// loadAssignments reads the assignments of a workflow in order, without their
// operations and results.
func (c *Controller) loadAssignments(tx store.Tx, number uint64) (all []*TaskAssignment, err error) {
	err = c.kinds.assignment.Under(tx, record.Seq(number), func(a *TaskAssignment) error {
		all = append(all, a)
		return nil
	})
	return all, err
}

// complete reads what loadAssignments leaves out.
func (a *TaskAssignment) complete(tx store.Tx) error {
	s, _, err := stepsOf.Get(tx, a.key())
	if err != nil {
		return err
	}
	a.Operations, a.ReworkOperations = s.Operations, s.ReworkOperations
	a.Result, _, err = results.Get(tx, a.key())
	return err
}

// carriedBy finds the assignment that a task of the queue carries out; nil when
// it carries out none.
func (c *Controller) carriedBy(tx store.Tx, task string) (*TaskAssignment, error) {
	key, there, err := carriers.Get(tx, record.Seq(numberOf(task)))
	if err != nil || !there {
		return nil, err
	}
	return c.kinds.assignment.At(tx, key)
}

// saveAssignment writes an assignment with its audit event. It is the only way
// one changes. What it carries out is written once, by addAssignment.
func (c *Controller) saveAssignment(tx *audit.Tx, a *TaskAssignment, e record.Event) error {
	kept := *a
	kept.Operations, kept.ReworkOperations, kept.Result = nil, nil, nil
	e.Trace = a.TraceID
	err := c.kinds.assignment.Keep(tx, e, &kept)
	a.AuditSeq = kept.AuditSeq
	return err
}

// carried reports whether a task of the queue carries an assignment out now.
func (a *TaskAssignment) carried() bool { return a.SwarmTask != "" && !a.Over() }

func (c *Controller) addAssignment(tx *audit.Tx, a *TaskAssignment, e record.Event) error {
	if err := stepsOf.Put(tx, a.key(), steps{a.Operations, a.ReworkOperations}); err != nil {
		return err
	}
	return c.saveAssignment(tx, a, e)
}

// failIn ends an assignment that was not carried out, and returns its result.
func (c *Controller) failIn(tx *audit.Tx, a *TaskAssignment, why FailedResult) (core.Raw, error) {
	if err := a.to(Failed, seconds(tx.Now())); err != nil {
		return nil, err
	}
	result := core.MustEncode(map[string]FailedResult{"error": why})
	if err := results.Put(tx, a.key(), result); err != nil {
		return nil, err
	}
	return result, c.saveAssignment(tx, a, record.Event{Type: "cad.assignment.failed", Detail: why})
}

// saveWorkflow writes a workflow with its audit event. It is the only way one
// changes.
func (c *Controller) saveWorkflow(tx *audit.Tx, w *Workflow, event string, detail any) error {
	kept := *w
	kept.Assignments = nil
	err := c.kinds.workflow.Keep(tx, record.Event{Type: event, Trace: w.TraceID, Detail: detail}, &kept)
	w.AuditSeq = kept.AuditSeq
	return err
}

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
		w, all, err := c.loadWorkflow(tx, number)
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
	return out, audit.Explain("read workflow "+id, err)
}

// Workflows lists workflows, newest first, without their assignments. Status is
// one of ExecutionStates, Agent an agent of it, Kind a scenario; Match looks into
// id, scenario and goal.
func (c *Controller) Workflows(ctx context.Context, tenant string, f core.Filter) (core.Page[Workflow], error) {
	page, err := record.Paged(c.kinds.workflow.Find(ctx, tenant, record.Query[*Workflow]{Filter: f}))
	return page, audit.Explain("list the workflows", err)
}

func (w *Workflow) fits(f core.Filter) bool {
	return core.Wants(f.Status, string(w.State)) && core.Wants(f.Kind, w.ScenarioName) && core.Wants(f.Session, w.SessionID) && core.Wants(f.Trace, w.TraceID) && f.Task == "" &&
		(f.Agent == "" || slices.ContainsFunc(w.Agents, func(s Seat) bool { return s.AgentID == f.Agent })) &&
		f.Within(w.CreatedAt.Time()) && f.Finds(w.WorkflowID, w.ScenarioName, w.Goal, w.Shown())
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
	return out, audit.Explain("read the assignment of task "+task, err)
}
