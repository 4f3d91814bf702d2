package cad

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Buckets of workflows. An assignment lies under its workflow's number and its
// place there; one without a workflow under 0 and its task's number.
const (
	bWorkflow   store.Bucket = "cad.workflow"   // number → Workflow, without its assignments
	bLive       store.Bucket = "cad.live"       // number → nothing, of those that run
	bAssignment store.Bucket = "cad.assignment" // number, index → TaskAssignment, without what follows
	bSteps      store.Bucket = "cad.steps"      // number, index → steps
	bResult     store.Bucket = "cad.result"     // number, index → result, of one that is over
	bCarrier    store.Bucket = "cad.carrier"    // number of a swarm task → number, index
	bCarried    store.Bucket = "cad.carried"    // number, index → nothing, of those that a task carries out now
)

// counterWorkflows counts them; each has the number it was made at.
const counterWorkflows = "cad.workflows"

// steps is what an assignment carries out: kept apart, so that looking at a
// workflow reads no operations.
type steps struct {
	Operations       []Step `json:"operations,omitempty"`
	ReworkOperations []Step `json:"rework_operations,omitempty"`
}

func numberKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func assignmentKey(workflow, index uint64) []byte {
	return binary.BigEndian.AppendUint64(numberKey(workflow), index)
}

func (a *TaskAssignment) key() []byte {
	if a.WorkflowID == "" {
		_, _, seq, _ := core.ParseID(a.SwarmTask)
		return assignmentKey(0, seq)
	}
	_, _, number, _ := core.ParseID(a.WorkflowID)
	return assignmentKey(number, uint64(a.Index))
}

// name is what the audit log calls an assignment.
func (a *TaskAssignment) name() string {
	if a.WorkflowID == "" {
		return a.SwarmTask
	}
	return a.WorkflowID + "/" + a.TaskID
}

// loadWorkflow reads a workflow's record without its assignments.
func loadWorkflow(tx store.Tx, number uint64) (*Workflow, error) {
	w := new(Workflow)
	there, err := fetch(tx, bWorkflow, numberKey(number), w)
	if err == nil && !there {
		err = core.Missing("workflow", core.NewID(core.WorkflowPrefix, tx.Tenant(), number))
	}
	return w, err
}

// loadAssignments reads the assignments of a workflow in order, without their
// operations and results.
func loadAssignments(tx store.Tx, number uint64) (all []*TaskAssignment, err error) {
	err = each(tx, bAssignment, func() (from, to []byte) { return numberKey(number), numberKey(number + 1) },
		func(a *TaskAssignment) { all = append(all, a) })
	return all, err
}

// loadAssignment reads one assignment by its key; nil when there is none.
func loadAssignment(tx store.Tx, key []byte) (*TaskAssignment, error) {
	a := new(TaskAssignment)
	there, err := fetch(tx, bAssignment, key, a)
	if err != nil || !there {
		return nil, err
	}
	return a, nil
}

// complete reads what loadAssignments leaves out.
func (a *TaskAssignment) complete(tx store.Tx) error {
	var s steps
	if _, err := fetch(tx, bSteps, a.key(), &s); err != nil {
		return err
	}
	a.Operations, a.ReworkOperations = s.Operations, s.ReworkOperations
	data, err := tx.Get(bResult, a.key())
	if err == nil && data != nil {
		a.Result = bytes.Clone(data)
	}
	return err
}

// carriedBy finds the assignment that a task of the queue carries out; nil when
// it carries out none.
func carriedBy(tx store.Tx, task string) (*TaskAssignment, error) {
	_, _, seq, _ := core.ParseID(task)
	key, err := tx.Get(bCarrier, numberKey(seq))
	if err != nil || key == nil {
		return nil, err
	}
	return loadAssignment(tx, bytes.Clone(key))
}

// saveAssignment writes an assignment with its audit event. It is the only way
// one changes. What it carries out is written once, by addAssignment.
func saveAssignment(tx *audit.Tx, a *TaskAssignment, n note) error {
	seq, err := tx.Record(audit.Entry{
		Type: n.event, Trace: a.TraceID, Subject: "cad.assignment", ID: a.name(), State: a.audited(), Detail: n.detail, Prev: a.AuditSeq,
	})
	if err != nil {
		return err
	}
	a.AuditSeq = seq
	kept := *a
	kept.Operations, kept.ReworkOperations, kept.Result = nil, nil, nil
	tx.Changed("cad.assignment", a.name(), &kept)
	if a.carried() {
		err = tx.Put(bCarried, a.key(), nil)
	} else {
		err = tx.Delete(bCarried, a.key())
	}
	if err != nil {
		return err
	}
	return put(tx, bAssignment, a.key(), &kept)
}

// carried reports whether a task of the queue carries an assignment out now.
func (a *TaskAssignment) carried() bool { return a.SwarmTask != "" && !a.over() }

func addAssignment(tx *audit.Tx, a *TaskAssignment, n note) error {
	if err := put(tx, bSteps, a.key(), steps{a.Operations, a.ReworkOperations}); err != nil {
		return err
	}
	return saveAssignment(tx, a, n)
}

// setResult keeps the result of an assignment; nil forgets it.
func setResult(tx *audit.Tx, a *TaskAssignment, result core.Raw) error {
	if result == nil {
		return tx.Delete(bResult, a.key())
	}
	return tx.Put(bResult, a.key(), bytes.Clone(result))
}

// saveWorkflow writes a workflow with its audit event. It is the only way one
// changes.
func (s *workflows) saveWorkflow(tx *audit.Tx, w *Workflow, event string, detail any) error {
	seq, err := tx.Record(audit.Entry{
		Type: event, Trace: w.TraceID, Subject: "cad.workflow", ID: w.WorkflowID, State: w.audited(), Detail: detail, Prev: w.AuditSeq,
	})
	if err != nil {
		return err
	}
	w.AuditSeq = seq
	kept := *w
	kept.Assignments = nil
	if w.State == Initializing || w.State == WorkflowRunning {
		err = tx.Put(bLive, numberKey(w.Number), nil)
	} else {
		err = tx.Delete(bLive, numberKey(w.Number))
	}
	if err != nil {
		return err
	}
	tx.Changed("cad.workflow", w.WorkflowID, &kept)
	at := place{w.TenantID, w.Number}
	tx.OnCommit(func() { s.look(at) })
	return put(tx, bWorkflow, numberKey(w.Number), &kept)
}

// eachWorkflow calls fn for workflows, the newest first, until it returns false.
func eachWorkflow(tx store.Tx, fn func(*Workflow) bool) error {
	var bad error
	err := tx.Scan(bWorkflow, nil, nil, true, func(key, value []byte) bool {
		w := new(Workflow)
		if bad = core.DecodeStored(bytes.Clone(value), w); bad != nil {
			bad = fmt.Errorf("decode workflow %x: %w", key, bad)
			return false
		}
		return fn(w)
	})
	return errors.Join(err, bad)
}

// auditables are the records that reconcile compares.
func workflowKinds() []audit.Auditable {
	return []audit.Auditable{
		audited[Workflow]{"cad.workflow", bWorkflow, func(w *Workflow) (string, any) { return w.WorkflowID, w.audited() }},
		audited[TaskAssignment]{"cad.assignment", bAssignment, func(a *TaskAssignment) (string, any) { return a.name(), a.audited() }},
	}
}
