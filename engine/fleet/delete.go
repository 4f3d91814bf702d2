package fleet

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// Delete removes an agent in any state: its tasks are cancelled, its open
// questions voided, its processes ended and swept. Tasks, results and log
// lines stay. A rule of the judge may forbid it; where a rule wants a person,
// the operator's confirmation is the answer, so nobody else may.
func (f *Fleet) Delete(ctx context.Context, by core.Caller, name string) error {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return err
	}
	if err := f.mayDelete(ctx, by, m); err != nil {
		return err
	}
	m.mu.Lock()
	if m.gone {
		m.mu.Unlock()
		return core.Missing("agent", name)
	}
	m.gone = true // from here on it takes no task
	stop, watched := m.stop, m.watched
	m.mu.Unlock()

	if err := f.dropTasks(ctx, by, m); err != nil {
		m.mu.Lock()
		m.gone = false
		m.mu.Unlock()
		return err
	}
	if err := f.remove(ctx, by, m); err != nil {
		m.mu.Lock()
		m.gone = false
		m.mu.Unlock()
		return err
	}
	if watched {
		stop()
		select {
		case <-m.done: // swept
		case <-ctx.Done():
		}
	}
	if k, ok := f.opt.Runtimes[m.rec.Load().Runtime].(Keeper); ok {
		if err := k.Forget(context.WithoutCancel(ctx), *m.rec.Load()); err != nil {
			return fmt.Errorf("agent %s was deleted; what its runtime keeps for it was not: %w", name, err)
		}
	}
	return nil
}

// mayDelete asks the judge and records what it decided, before anything ends.
func (f *Fleet) mayDelete(ctx context.Context, by core.Caller, m *member) error {
	a := m.rec.Load()
	ask := judge.Ask{
		Gate: judge.GateAgent, TraceID: core.NewTrace(nil),
		Action: judge.Action{Kind: "agent.delete", Args: core.MustEncode(map[string]string{"agent": a.Name})},
		Agent:  judge.AgentRef{Name: a.Name, Role: a.Role, Project: a.Project, Profile: a.Profile},
		Driver: a.Runtime, Intent: "delete agent " + a.Name, By: by,
	}
	return judge.Decide(func() error {
		v := f.opt.Judge.Evaluate(ctx, by.Tenant, ask)
		cause := core.Errorf(core.Denied, "agent %s may not be deleted by %s: %s", a.Name, by.Name, v.ReasonCode).
			With("rule", v.RuleID).With("reason_code", v.ReasonCode)
		if v.Decision == judge.HITL {
			if by.Kind == core.Operator {
				return nil // the confirmation was the answer; agent.deleted names who gave it
			}
			return f.opt.Ledger.Refuse(ctx, by, audit.Entry{Type: "agent.delete_refused", Trace: ask.TraceID, Subject: "agent", ID: a.Name}, cause)
		}
		err := f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
			_, _, err := f.opt.Judge.Commit(tx, ask, v)
			return err
		})
		if err == nil && v.Decision == judge.Deny {
			err = cause
		}
		return err
	})
}

// dropTasks cancels what the agent works on and what is queued for it.
func (f *Fleet) dropTasks(ctx context.Context, by core.Caller, m *member) error {
	reason := "agent " + m.name + " was deleted by " + cut(by.Name, maxCall)
	for _, status := range []task.Status{task.Running, task.Queued} {
		q := core.Filter{Agent: m.name, Status: string(status), Size: core.MaxPageSize}
		for newest := ""; ; {
			page, err := f.opt.Tasks.List(ctx, m.tenant, q)
			if err != nil {
				return fmt.Errorf("find the tasks of agent %s: %w", m.name, err)
			}
			if len(page.Items) == 0 || page.Items[0].TaskID == newest {
				break // none left, or none that can be cancelled
			}
			newest = page.Items[0].TaskID
			for _, t := range page.Items {
				if err := f.endTask(ctx, by, m, t.TaskID, reason); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// remove deletes the record and voids what it still asks.
func (f *Fleet) remove(ctx context.Context, by core.Caller, m *member) error {
	return f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		ours := func(a *judge.Approval) bool { return deadCall(a) && a.Agent.Name == m.name }
		if err := f.opt.Judge.Void(tx, ours, "agent "+m.name+" was deleted"); err != nil {
			return err
		}
		a, err := f.agents.Need(tx, m.name)
		if err != nil {
			return err
		}
		n := record.Event{Type: "agent.deleted", Detail: map[string]any{"status": a.Status, "task_id": a.TaskID}}
		return errors.Join(f.agents.Remove(tx, n, a), activities.Drop(tx, record.Text(m.name)))
	})
}
