package cad

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
)

// workflows runs the workflows of all tenants: it looks at what a workflow's
// record says and takes the next step. It keeps nothing in mind that matters:
// after a restart it looks at all that are not over.
type workflows struct {
	c         *Controller
	scenarios map[string]Scenario // the built-in ones
	loop      *loop.Loop

	mu     sync.Mutex
	looks  map[string]map[uint64]bool // workflows to look at, by tenant and number
	giving dispatched                 // what the loop dispatches right now
}

// place is where a workflow's record lies.
type place struct {
	tenant string
	number uint64
}

type dispatched struct {
	place
	task string
	try  int
}

func newWorkflows(c *Controller) (*workflows, error) {
	s := &workflows{c: c, looks: map[string]map[uint64]bool{}}
	s.loop = loop.New(loop.Options{Component: component, Health: c.opt.Health, Clock: c.ledger.Clock(), Pass: s.pass})
	var err error
	s.scenarios, err = builtinScenarios(finderOf(c.roles))
	return s, err
}

// finderOf finds roles in a list.
func finderOf(roles []RoleTemplate) roleFinder {
	return func(name string) *RoleTemplate {
		for i := range roles {
			if roles[i].Name == name {
				return &roles[i]
			}
		}
		return nil
	}
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

// RunWorkflows gives the tasks of workflows as their turn comes, until ctx ends.
func (c *Controller) RunWorkflows(ctx context.Context) error {
	tenants, err := c.opt.Swarm.Tenants(ctx)
	if err == nil {
		err = c.opt.Health.Tenants(ctx, component, idsOf(tenants), func(tenant string) error { return c.work.recall(ctx, tenant) })
	}
	if err != nil {
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

// recall brings every assignment of a tenant to where its task is, and looks at
// every workflow that is not over. A task moves while nobody follows it when a
// new engine takes the leases of one that died away.
func (s *workflows) recall(ctx context.Context, tenant string) error {
	var all []*TaskAssignment
	err := s.c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		err := s.c.kinds.workflow.Along(tx, bLive, live, func(w *Workflow) error {
			s.look(place{tenant, w.Number})
			return nil
		})
		return errors.Join(err, s.c.kinds.assignment.Along(tx, bCarried, carried, func(a *TaskAssignment) error {
			all = append(all, a)
			return nil
		}))
	})
	if len(core.DamagedIn(err)) > 0 { // nobody follows those
		s.c.opt.Health.Report(tenant, component, "", err)
	} else if err != nil {
		return err
	}
	for _, was := range all {
		err := s.c.ledger.Update(ctx, core.Self(tenant, "cad"), func(tx *audit.Tx) error {
			a, err := s.c.kinds.assignment.At(tx, was.key())
			if err != nil || a == nil || !a.carried() {
				return err // it went on meanwhile
			}
			t, err := s.c.opt.Tasks.In(tx, a.SwarmTask)
			if err != nil {
				return err
			}
			return s.followIn(tx, a, &t)
		})
		if health.WholeEngine(err) {
			return err
		}
		s.c.opt.Health.Report(tenant, component, "assignment "+was.name(), err)
	}
	return nil
}

// step does for one workflow what there is to do now. Its error means that it
// has to be tried again.
func (s *workflows) step(ctx context.Context, at place) error {
	var w *Workflow
	var all []*TaskAssignment
	if err := s.c.ledger.View(ctx, at.tenant, func(tx *audit.Tx) (err error) {
		if w, err = s.c.loadWorkflow(tx, at.number); err != nil {
			return err
		}
		all, err = s.c.loadAssignments(tx, at.number)
		return err
	}); err != nil {
		return err
	}
	var errs []error
	for _, a := range all {
		switch {
		case w.Cancelled != "" && a.carried():
			_, err := s.c.opt.Swarm.Cancel(ctx, w.author(), a.SwarmTask, w.Cancelled)
			if err != nil && !errors.Is(err, core.Kind(core.Conflict)) { // it is over, or being cancelled
				errs = append(errs, err)
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
		s.mu.Lock()
		s.giving = dispatched{place{w.TenantID, w.Number}, a.TaskID, a.Tries}
		s.mu.Unlock()
		_, err = s.c.opt.Swarm.Dispatch(ctx, w.author(), swarm.Dispatch{
			Kind: KindAssignment, Input: in, Session: w.SessionID, Trace: w.TraceID,
			Intent: "workflow " + w.WorkflowID + " (" + w.ScenarioName + ")",
		})
		s.mu.Lock()
		s.giving = dispatched{}
		s.mu.Unlock()
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
		return s.refusedIn(tx, now, why)
	})
}

// refusedIn ends an assignment that could not even be given.
func (s *workflows) refusedIn(tx *audit.Tx, a *TaskAssignment, why FailedResult) error {
	if err := a.to(Failed, seconds(tx.Now())); err != nil {
		return err
	}
	a.Tries++
	result := core.MustEncode(map[string]FailedResult{"error": why})
	if err := setResult(tx, a, result); err != nil {
		return err
	}
	if err := s.c.saveAssignment(tx, a, record.Event{Type: "cad.assignment.failed", Detail: why}); err != nil {
		return err
	}
	return s.advanceIn(tx, a, result)
}

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
