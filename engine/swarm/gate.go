package swarm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/queue"
	"swarmdeck/engine/task"
)

// startAsk is the question at a task's start, with the title its runner gave.
type startAsk struct {
	judge.Ask
	title string
}

// startAsk builds the question for a task's start gate from its input.
func (s *shared) startAsk(t *task.Task, input core.Raw) (startAsk, error) {
	r, err := s.runner(t.Kind)
	if err != nil {
		return startAsk{}, err
	}
	title, action, err := r.Check(t.TenantID, input)
	if err != nil {
		return startAsk{}, err
	}
	if r, ok := r.(resumer); ok {
		t.Resumes = r.Resumes(input)
	}
	if tg, ok := r.(targeter); ok {
		t.Agent = tg.Target(input)
	} else if t.Agent != "" {
		return startAsk{}, core.Invalid("agent", t.Agent, "none: tasks of kind "+t.Kind+" go to no agent")
	}
	if o, ok := r.(outlaster); ok && t.Agent != "" {
		t.Resumes = t.Resumes || o.Outlasts(t.TenantID, t.Agent)
	}
	intent := t.Intent
	if intent == "" {
		intent = title
	}
	ask := judge.Ask{
		Gate: judge.GateStart, TraceID: t.TraceID, TaskID: t.TaskID, Session: t.SessionID,
		Attempt: t.Attempt, Priority: t.Priority, Action: action, Intent: intent, Said: t.Intent != "",
		Agent: judge.AgentRef{Name: t.Agent},
		By:    t.Asker(),
	}
	if d, ok := r.(agentDescriber); ok && t.Agent != "" {
		ask.Agent = d.AgentRef(t.TenantID, t.Agent)
	}
	if c, ok := r.(celled); ok && ask.By.Kind == core.Agent && s.opt.Beyond != nil {
		dir, why := c.Cell(t.TenantID, action)
		if why == "" {
			_, why = s.opt.Beyond(t.TenantID, ask.By.Name, dir)
		}
		ask.Contained = judge.Contained(why)
	}
	return startAsk{ask, core.Cut(title, 200)}, nil
}

// promoteAtOnce is how many due tasks pass their gate in one go, and so in one
// commit or two. The scheduler's other duties come between.
const promoteAtOnce = 64

// dueTask is a task whose time has come.
type dueTask struct {
	queue.Entry
	task task.Task
}

// promote passes due tasks of a tenant through their gate: retries after their
// back-off, and tasks whose approval no longer stood. It returns when the next
// one is due, zero for none.
func (s *Swarm) promote(ctx context.Context, tenant string) (next time.Time, err error) {
	var ready []dueTask
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		var due []queue.Entry
		due, next, err = queue.Gate.Due(tx, tx.Now(), promoteAtOnce, s.quarantinedIn(tenant))
		ready = make([]dueTask, len(due))
		for i, e := range due {
			ready[i].Entry = e
			t := &ready[i].task
			if err := s.tasks.Load(tx, e.Seq, t); err != nil {
				return s.unless(tenant, e.Seq, err)
			}
			if t.Input, err = s.tasks.Input(tx, e.Seq); err != nil {
				return err
			}
		}
		return err
	})
	if errors.Is(err, errQuarantined) {
		return s.promote(ctx, tenant)
	}
	if err != nil {
		return next, fmt.Errorf("read the schedule of %s: %w", tenant, err)
	}
	errs := make([]error, len(ready))
	var all sync.WaitGroup
	for i := range ready {
		all.Go(func() {
			t := &ready[i].task
			errs[i] = health.Caught(func() error { return s.promoteOne(ctx, ready[i].At, t) })
			if errs[i] != nil && errors.Is(s.unless(tenant, t.Seq(), errs[i]), errQuarantined) {
				errs[i] = nil
			}
		})
	}
	all.Wait()
	return next, errors.Join(errs...)
}

func (s *Swarm) promoteOne(ctx context.Context, due time.Time, t *task.Task) error {
	if t.ApprovalID != "" { // it stands; whether for this is looked at when it starts
		return s.promoted(ctx, due, t, func(tx *audit.Tx, now *task.Task) error {
			if err := s.tasks.Move(tx, now, task.Queued, "task.requeued", nil); err != nil {
				return err
			}
			return s.enqueue(tx, now)
		})
	}
	ask, err := s.startAsk(t, t.Input)
	if err != nil { // the runner no longer takes what it took
		return s.unpromoted(ctx, due, t, "invalid_input", err)
	}
	s.bind(t.TenantID, &ask.Ask)
	err = judge.Decide(func() error {
		v := s.judge.Evaluate(ctx, t.TenantID, ask.Ask)
		unsure(t, &v)
		return s.promoted(ctx, due, t, func(tx *audit.Tx, now *task.Task) error {
			return s.pass(tx, now, task.Queued, "task.requeued", ask, v)
		})
	})
	switch {
	case err == nil:
		return nil
	case broken(err), errors.Is(err, judge.ErrStale):
		return fmt.Errorf("requeue task %s: %w", t.TaskID, err)
	}
	return s.unpromoted(ctx, due, t, "not_judged", err)
}

// promoted takes a due task off the schedule and lets pass decide about it. It
// does nothing when the task has gone on meanwhile.
func (s *shared) promoted(ctx context.Context, due time.Time, t *task.Task, pass func(*audit.Tx, *task.Task) error) error {
	return s.ledger.Update(ctx, core.Self(t.TenantID, "scheduler"), func(tx *audit.Tx) error {
		at := queue.Entry{At: due, Seq: t.Seq()}
		if there, err := queue.Gate.Has(tx, at); err != nil || !there {
			return err
		}
		var now task.Task
		if err := s.tasks.Load(tx, t.Seq(), &now); err != nil {
			return err
		}
		if err := queue.Gate.Drop(tx, at); err != nil {
			return err
		}
		now.RunAt = time.Time{}
		return pass(tx, &now)
	})
}

// unpromoted ends a task that can't pass its gate. One bad task must not stop
// the scheduler.
func (s *ending) unpromoted(ctx context.Context, due time.Time, t *task.Task, code string, cause error) error {
	e := task.Error{Code: code, Message: core.Cut(core.AsError(cause).Message, 4096)}
	return s.promoted(ctx, due, t, func(tx *audit.Tx, now *task.Task) error {
		return s.end(tx, now, task.Result{Status: task.Failed, Error: &e})
	})
}

// voidGates closes the open approvals of a task that goes away.
func (s *shared) voidGates(tx *audit.Tx, t *task.Task, reason string) error {
	if t.Waiting == "" {
		return nil
	}
	return s.judge.VoidTask(tx, t.TaskID, func(a *judge.Approval) bool { return a.Gate != judge.GateBudget }, reason)
}

// PastAsk implements judge.Tasks: the question at the start of a task that
// was dispatched before, as its runner reads it today.
func (s *shared) PastAsk(ctx context.Context, tenant, id string) (judge.Ask, error) {
	t, err := s.tasks.Whole(ctx, core.Self(tenant, "reader"), id)
	if err != nil {
		return judge.Ask{}, err
	}
	if core.IsErased(t.Input) {
		return judge.Ask{}, core.Missing("input of task", id)
	}
	ask, err := s.startAsk(&t, t.Input)
	return ask.Ask, err
}
