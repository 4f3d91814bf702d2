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
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
)

// workflows runs the workflows of all tenants: a loop that looks at what a
// workflow's record says and takes the next step. It keeps nothing in mind
// that matters: after a restart it looks at all that are not over.
type workflows struct {
	c         *Controller
	scenarios map[string]Scenario // the built-in ones
	bell      chan struct{}       // one slot

	mu     sync.Mutex
	looks  map[place]bool // workflows to look at
	giving dispatched     // what the loop dispatches right now
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
	s := &workflows{c: c, bell: make(chan struct{}, 1), looks: map[place]bool{}}
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
	s.mu.Lock()
	s.looks[at] = true
	s.mu.Unlock()
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// take is what there is to look at.
func (s *workflows) take() map[place]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.looks
	s.looks = map[place]bool{}
	return all
}

// lookAgain is how long after a failure a workflow is looked at again.
const lookAgain = time.Second

// RunWorkflows gives the tasks of workflows as their turn comes, until ctx ends.
func (c *Controller) RunWorkflows(ctx context.Context) error {
	s := c.work
	tenants, err := c.opt.Swarm.Tenants(ctx)
	if err != nil {
		return fmt.Errorf("find the workflows that run: %w", err)
	}
	if err := c.opt.Health.Tenants(ctx, component, idsOf(tenants), func(tenant string) error { return s.recall(ctx, tenant) }); err != nil {
		return fmt.Errorf("find the workflows that run: %w", err)
	}
	again := time.NewTimer(lookAgain)
	defer again.Stop()
	failed := map[place]bool{}
	for {
		select {
		case <-s.bell:
		case <-again.C:
			for at := range failed {
				s.look(at)
			}
			clear(failed)
		case <-ctx.Done():
			return ctx.Err()
		}
		waits := len(failed) > 0
		for at := range s.take() {
			about := fmt.Sprintf("workflow %d", at.number)
			if err := health.Caught(func() error { return s.step(ctx, at) }); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				c.opt.Health.Report(at.tenant, component, about, err)
				failed[at] = true
				continue
			}
			c.opt.Health.Clear(at.tenant, component, about)
		}
		if len(failed) > 0 && !waits { // or other work would put it off
			again.Reset(lookAgain)
		}
	}
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
