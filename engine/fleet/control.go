package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// ackWait is how long an operation waits for a runtime to follow. After it
// the record shows that it is still asked ("pausing"), and the supervisor
// goes on trying.
const ackWait = 5 * time.Second

// Start brings an agent back that is stopped, offline or failed. One that
// works already stays as it is.
func (f *Fleet) Start(ctx context.Context, by core.Caller, name string) (Agent, error) {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return Agent{}, err
	}
	if a := m.rec.Load(); !a.Stopped && a.Status != Offline && a.Status != Failed {
		return *a, nil
	}
	return f.again(ctx, by, m, "agent.started")
}

// Restart ends an agent's process, clears its failures and starts it again. A
// task it works on fails in this attempt and may be tried again.
func (f *Fleet) Restart(ctx context.Context, by core.Caller, name string) (Agent, error) {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return Agent{}, err
	}
	if m.look().watched { // what it was made of may have changed just now
		m.await(ctx, ackWait, func() bool {
			return m.gone || m.run != nil || m.stale && !m.openAt.IsZero() || !m.stale && m.handle != nil
		})
	}
	return f.again(ctx, by, m, "agent.restarted")
}

func (f *Fleet) again(ctx context.Context, by core.Caller, m *member, event string) (Agent, error) {
	h, r := m.now()
	if r != nil {
		r.end(restarted, "the agent was restarted by "+by.Name)
	}
	a, err := f.change(ctx, by, m, record.Event{Type: event}, func(_ *audit.Tx, a *Agent) error {
		a.Stopped, a.Reason = false, ""
		m.Change(func() { m.health.Status, m.health.Reason = Starting, "" })
		return nil
	})
	if err != nil {
		return a, err
	}
	if h == nil {
		m.renew() // not open yet: try now rather than after the back-off
		return a, nil
	}
	if err := h.Restart(ctx); err != nil {
		return a, fmt.Errorf("restart agent %s: %w", m.name, err)
	}
	m.Change(func() { m.held, m.unsure = false, false }) // a new process does not stand still
	m.ring()
	return *m.rec.Load(), nil
}

// Stop ends an agent's process and its task, and keeps it offline until
// somebody starts it, over restarts of the engine too.
func (f *Fleet) Stop(ctx context.Context, by core.Caller, name string) (Agent, error) {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return Agent{}, err
	}
	reason := "stopped by " + core.ClipTo(by.Name, maxCall)
	a, err := f.change(store.IfFull(ctx, store.UseReserve), by, m, record.Event{Type: "agent.stopped"}, func(_ *audit.Tx, a *Agent) error {
		if a.Stopped {
			return errSame
		}
		a.Stopped, a.Reason = true, reason
		return nil
	})
	if err != nil {
		return a, err
	}
	if a.TaskID != "" {
		if err := f.endTask(ctx, by, m, a.TaskID, "agent "+name+" was "+reason); err != nil {
			return a, err
		}
	}
	if h, _ := m.now(); h != nil {
		if err := h.Stop(ctx); err != nil {
			return a, fmt.Errorf("stop agent %s: %w", name, err)
		}
		if err := f.keepHealth(ctx, m); err != nil {
			return a, err
		}
	}
	return *m.rec.Load(), nil
}

// Pause makes an agent stand still: its process is stopped where it is, its
// tool calls are held and it takes no task. The record says pausing until the
// runtime has acknowledged; the pause lasts over restarts of the engine.
func (f *Fleet) Pause(ctx context.Context, by core.Caller, name string) (Agent, error) {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return Agent{}, err
	}
	watched := m.look().watched
	a, err := f.change(store.IfFull(ctx, store.UseReserve), by, m, record.Event{Type: "agent.pausing"}, func(_ *audit.Tx, a *Agent) error {
		if a.Paused || a.Pausing {
			return errSame
		}
		a.Pausing = true
		return nil
	})
	if err != nil || a.Paused {
		return a, err
	}
	if !watched { // no engine runs, so there is nothing to stop
		err := f.acknowledge(ctx, m)
		return *m.rec.Load(), err
	}
	m.await(ctx, ackWait, func() bool { return m.gone || !m.rec.Load().Pausing })
	return *m.rec.Load(), nil
}

// Resume lets a paused agent go on.
func (f *Fleet) Resume(ctx context.Context, by core.Caller, name string) (Agent, error) {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return Agent{}, err
	}
	a, err := f.change(ctx, by, m, record.Event{Type: "agent.resumed"}, func(_ *audit.Tx, a *Agent) error {
		if !a.Paused && !a.Pausing {
			return errSame
		}
		a.Paused, a.Pausing = false, false
		return nil
	})
	if err != nil {
		return a, err
	}
	if m.look().watched {
		m.await(ctx, ackWait, func() bool { return m.gone || m.holds&byOperator == 0 && (m.holds != 0 || !m.held && !m.unsure) })
	}
	return *m.rec.Load(), nil
}

// Delete removes an agent in any state: its tasks are cancelled, its open
// questions voided, its processes ended and swept, its log removed. Tasks, their
// logs and results stay. A rule of the judge may forbid it; where a rule wants a person,
// the operator's confirmation is the answer, so nobody else may.
func (f *Fleet) Delete(ctx context.Context, by core.Caller, name string) error {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return err
	}
	if err := f.mayDelete(ctx, by, m); err != nil {
		return err
	}
	gone := false
	m.Change(func() { gone, m.gone = m.gone, true }) // from here on it takes no task
	if gone {
		return core.Missing("agent", name)
	}
	if err = f.dropTasks(ctx, by, m); err == nil {
		err = f.remove(ctx, by, m)
	}
	if err != nil {
		m.Change(func() { m.gone = false })
		return err
	}
	if now := m.look(); now.watched {
		now.stop()
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
	if err := f.opt.Tasks.DropLog(context.WithoutCancel(ctx), by, "agent:"+name); err != nil {
		return fmt.Errorf("agent %s was deleted; its log was not: %w", name, err)
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
	reason := "agent " + m.name + " was deleted by " + core.ClipTo(by.Name, maxCall)
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
		if err := f.dropMessages(tx, m.name); err != nil {
			return err
		}
		for _, left := range f.leavers {
			if err := left(tx, m.name); err != nil {
				return err
			}
		}
		n := record.Event{Type: "agent.deleted", Detail: map[string]any{"status": a.Status, "task_id": a.TaskID}}
		return errors.Join(f.agents.Remove(tx, n, a), activities.Drop(tx, record.Text(m.name)))
	})
}
