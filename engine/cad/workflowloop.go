package cad

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/swarm"
	"swarmdeck/store"
)

// workflows runs the workflows of all tenants: it looks at what a workflow's
// record says and takes the next step. It keeps nothing in mind that matters:
// after a restart it looks at all that are not over.
type workflows struct {
	c    *Controller
	loop *loop.Loop

	mu    sync.Mutex
	looks map[string]map[uint64]bool // workflows to look at, by tenant and number
}

// place is where a workflow's record lies.
type place struct {
	tenant string
	number uint64
}

func newWorkflows(c *Controller) *workflows {
	s := &workflows{c: c, looks: map[string]map[uint64]bool{}}
	s.loop = loop.New(loop.Options{Component: component, Health: c.opt.Health, Clock: c.ledger.Clock(), Pass: s.pass})
	return s
}

// look has the loop look at a workflow.
func (s *workflows) look(at place) {
	s.note(at)
	s.loop.Ring(at.tenant)
}

func (s *workflows) note(at place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looks[at.tenant] == nil {
		s.looks[at.tenant] = map[uint64]bool{}
	}
	s.looks[at.tenant][at.number] = true
}

// lookAgain is how long after a failure a workflow is looked at again.
const lookAgain = time.Second

// Run gives the tasks of workflows as their turn comes, until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.eachTenant(ctx, func(tenant string) error { return c.work.recall(ctx, tenant) }); err != nil {
		return fmt.Errorf("find the workflows that run: %w", err)
	}
	return c.work.loop.Run(ctx)
}

// pass looks at what there is to look at of a tenant. A workflow that fails keeps
// no other waiting.
func (s *workflows) pass(ctx context.Context, tenant string, _ bool) (next time.Time, err error) {
	s.mu.Lock()
	looks := s.looks[tenant]
	delete(s.looks, tenant)
	s.mu.Unlock()
	for number := range looks {
		at, about := place{tenant, number}, fmt.Sprintf("workflow %d", number)
		err := health.Caught(func() error { return s.step(ctx, at) })
		if err == nil {
			s.c.opt.Health.Clear(tenant, component, about)
			continue
		}
		if ctx.Err() != nil || health.WholeEngine(err) {
			return next, err
		}
		s.c.opt.Health.Report(tenant, component, about, err)
		s.note(at)
		next = s.c.ledger.Clock().Now().Add(lookAgain)
	}
	return next, nil
}

// recall looks at every workflow of a tenant that is not over.
func (s *workflows) recall(ctx context.Context, tenant string) error {
	err := s.c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return s.c.kinds.workflow.Along(tx, bLive, live, func(w *Workflow) error {
			s.look(place{tenant, w.Number})
			return nil
		})
	})
	if len(core.DamagedIn(err)) > 0 { // nobody follows those
		s.c.opt.Health.Report(tenant, component, "", err)
		return nil
	}
	return err
}

// step does for one workflow what there is to do now. Its error means that it
// has to be tried again.
func (s *workflows) step(ctx context.Context, at place) error {
	var w *Workflow
	var all []*TaskAssignment
	if err := s.c.ledger.View(ctx, at.tenant, func(tx *audit.Tx) (err error) {
		w, all, err = s.c.loadWorkflow(tx, at.number)
		return err
	}); err != nil {
		return err
	}
	var errs []error
	for _, a := range all {
		switch {
		case w.Cancelled != "" && a.carried():
			if _, err := s.c.opt.Swarm.Cancel(ctx, w.author(), a.SwarmTask, w.Cancelled); !errors.Is(err, core.Kind(core.Conflict)) {
				errs = append(errs, err) // else it is over, or being cancelled
			}
		case w.State.Final() || w.Cancelled != "":
		case a.Status == Pending && a.SwarmTask == "" && !a.Unassigned:
			errs = append(errs, s.give(ctx, w, a))
		}
	}
	return errors.Join(errs...)
}

// author is in whose name a workflow's tasks are given: who started it.
func (w *Workflow) author() core.Caller {
	return core.Caller{Tenant: w.TenantID, Name: w.CreatedBy, Kind: w.ByKind, Door: core.DoorEngine}
}

// give dispatches one task. One that is refused has failed.
func (s *workflows) give(ctx context.Context, w *Workflow, a *TaskAssignment) error {
	if _, err := s.c.member(ctx, w.author(), a.AgentID); err != nil {
		return err // its agents are kept for good: this one is on disk and about to be known
	}
	in, err := s.input(ctx, w, a)
	if err == nil {
		_, err = s.c.opt.Swarm.Dispatch(ctx, w.author(), swarm.Dispatch{
			Kind: KindAssignment, Input: in, Session: w.SessionID, Trace: w.TraceID,
			Intent: "workflow " + w.WorkflowID + " (" + w.ScenarioName + ")",
		})
	}
	var refused *core.Error
	if err == nil || !errors.As(err, &refused) || refused.Code == core.Internal || refused.Code == core.Unavailable {
		return err
	}
	why := FailedResult{Code: string(refused.Code), Message: core.AsError(err).Message, Field: fieldOf(refused)}
	if class, ok := refused.Details["error"].(string); ok {
		why.Code = class
	}
	return s.c.ledger.Update(ctx, core.Self(w.TenantID, "cad"), func(tx *audit.Tx) error {
		now, err := s.c.kinds.assignment.At(tx, a.key())
		if err != nil || now == nil || now.Status != Pending || now.SwarmTask != "" || now.Tries != a.Tries || now.AgentID != a.AgentID {
			return err // it went on meanwhile
		}
		now.Tries++
		result, err := s.c.failIn(tx, now, why)
		if err != nil {
			return err
		}
		return s.advanceIn(tx, now, result)
	})
}

// fieldOf is the field that an error names.
func fieldOf(e *core.Error) string {
	field, _ := e.Details["field"].(string)
	return field
}

// input is what the task of an assignment is to do: its operations, and what
// they may refer to.
func (s *workflows) input(ctx context.Context, w *Workflow, a *TaskAssignment) (core.Raw, error) {
	in := AssignmentInput{
		TaskID: a.TaskID, AgentID: a.AgentID, WorkspaceID: a.WorkspaceID, WorkflowID: w.WorkflowID, Round: a.Round, Try: a.Tries,
	}
	err := s.c.ledger.View(ctx, w.TenantID, func(tx *audit.Tx) error {
		if err := a.complete(tx); err != nil {
			return err
		}
		in.Brief = a.Brief
		in.Given.Rework = a.Rejected
		var err error
		if in.Given.Tasks, err = s.c.answersFor(tx, w.Number, a); err != nil {
			return err
		}
		if a.Round > 0 {
			in.Given.Own, err = answersOf(a)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	input, err := core.Encode(in)
	if err == nil && len(input) > core.MaxInput {
		err = core.Errorf(core.InvalidInput, "task %s: with what it refers to its input is larger than %d bytes", a.TaskID, core.MaxInput)
	}
	return input, err
}

// answersOf are the answers of an assignment's operations, by their ids.
func answersOf(a *TaskAssignment) (map[string]core.Raw, error) {
	var r struct {
		Operations map[string]core.Raw `json:"operations"`
	}
	if len(a.Result) == 0 {
		return nil, nil
	}
	err := core.DecodeStored(a.Result, &r)
	return r.Operations, err
}

// answersFor are the answers of other assignments that the operations of one
// refer to: task, then operation, workspace_id or agent_id.
func (c *Controller) answersFor(tx store.Tx, number uint64, a *TaskAssignment) (map[string]map[string]core.Raw, error) {
	wanted := map[string][]string{}
	for _, s := range slices.Concat(a.Operations, a.ReworkOperations) {
		for _, u := range mapping.Uses(s.Params, "params") {
			if u.Ref != nil && u.Ref.Root == rootTasks && len(u.Ref.Path) > 1 {
				task := u.Ref.Path[0].Key
				wanted[task] = append(wanted[task], u.Ref.Path[1].Key)
			}
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	all, err := c.loadAssignments(tx, number)
	if err != nil {
		return nil, err
	}
	given := map[string]map[string]core.Raw{}
	for _, o := range all {
		names := wanted[o.TaskID]
		if len(names) == 0 {
			continue
		}
		if err := o.complete(tx); err != nil {
			return nil, err
		}
		answers, err := answersOf(o)
		if err != nil {
			return nil, err
		}
		known := map[string]core.Raw{refWorkspace: core.MustEncode(o.WorkspaceID), refAgent: core.MustEncode(o.AgentID)}
		maps.Copy(known, answers)
		given[o.TaskID] = map[string]core.Raw{}
		for _, name := range names {
			if value, ok := known[name]; ok {
				given[o.TaskID][name] = value
			}
		}
	}
	return given, nil
}
