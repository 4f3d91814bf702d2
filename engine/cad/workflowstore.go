package cad

import (
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// An assignment lies under its workflow's number and its place there; one without
// a workflow under 0 and its task's number. What is large of it is kept apart, by
// the same key, so that looking at a workflow reads none of it.
const (
	bLive    store.Bucket = "cad.live"    // workflows that run, by the word live
	bCarried store.Bucket = "cad.carried" // assignments that a task carries out now, by the word carried

	stepsOf  record.Rows[steps]    = "cad.steps"
	results  record.Rows[core.Raw] = "cad.result"  // of those that are over
	carriers record.Rows[[]byte]   = "cad.carrier" // number of a task of the queue → key of its assignment
)

const (
	live    = "live"
	carried = "carried"
)

func (c *Controller) workflowKind() record.Kind[Workflow] {
	return record.Kind[Workflow]{
		Noun: "workflow", Subject: "cad.workflow", Bucket: "cad.workflow", Ledger: c.ledger,
		ID: func(w *Workflow) string { return w.WorkflowID }, Number: record.Numbers(core.WorkflowPrefix), Name: record.NumberedName(core.WorkflowPrefix),
		Head:  func(w *Workflow) record.Head { return record.Head{Tenant: &w.TenantID, Seq: &w.AuditSeq} },
		State: func(w *Workflow) any { return w.audited() },
		Indexes: []record.Index[Workflow]{{Bucket: bLive, Word: func(w *Workflow) string {
			if w.State == Initializing || w.State == WorkflowRunning {
				return live
			}
			return ""
		}}},
		Follow: func(tenant, _ string, w *Workflow) { c.work.look(place{tenant, w.Number}) },
	}
}

func (c *Controller) assignmentKind() record.Kind[TaskAssignment] {
	return record.Kind[TaskAssignment]{
		Noun: "assignment", Subject: "cad.assignment", Bucket: "cad.assignment", Ledger: c.ledger,
		ID: (*TaskAssignment).name, Place: (*TaskAssignment).key,
		Name: func(tenant string, key []byte) string {
			k := record.Parts(key)
			if workflow := k.Seq(); workflow > 0 {
				return fmt.Sprintf("%s, task %d", core.NewID(core.WorkflowPrefix, tenant, workflow), k.Seq()+1)
			}
			return core.NewID(core.TaskPrefix, tenant, k.Seq())
		},
		Head:  func(a *TaskAssignment) record.Head { return record.Head{Tenant: &a.TenantID, Seq: &a.AuditSeq} },
		State: func(a *TaskAssignment) any { return a.audited() },
		Indexes: []record.Index[TaskAssignment]{{Bucket: bCarried, Word: func(a *TaskAssignment) string {
			if a.carried() {
				return carried
			}
			return ""
		}}},
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
		return record.Seq(0).Seq(taskNumber(a.SwarmTask))
	}
	_, _, number, _ := core.ParseID(a.WorkflowID)
	return record.Seq(number).Seq(uint64(a.Index))
}

// name is what the audit log calls an assignment.
func (a *TaskAssignment) name() string {
	if a.WorkflowID == "" {
		return a.SwarmTask
	}
	return a.WorkflowID + "/" + a.TaskID
}

// loadWorkflow reads a workflow's record without its assignments.
func (c *Controller) loadWorkflow(tx store.Tx, number uint64) (*Workflow, error) {
	return c.kinds.workflow.Need(tx, core.NewID(core.WorkflowPrefix, tx.Tenant(), number))
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
	key, there, err := carriers.Get(tx, record.Seq(taskNumber(task)))
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
func (a *TaskAssignment) carried() bool { return a.SwarmTask != "" && !a.over() }

func (c *Controller) addAssignment(tx *audit.Tx, a *TaskAssignment, e record.Event) error {
	if err := stepsOf.Put(tx, a.key(), steps{a.Operations, a.ReworkOperations}); err != nil {
		return err
	}
	return c.saveAssignment(tx, a, e)
}

// setResult keeps the result of an assignment; nil forgets it.
func setResult(tx *audit.Tx, a *TaskAssignment, result core.Raw) error {
	if result == nil {
		return results.Delete(tx, a.key())
	}
	return results.Put(tx, a.key(), result)
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
