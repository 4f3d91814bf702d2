package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// Assign gives an idle agent a task. Every other agent refuses (CONFLICT,
// AgentBusyError), also one whose last assignment has not started yet.
func (f *Fleet) Assign(ctx context.Context, by core.Caller, name, message, uri string) (task.Task, error) {
	return f.assign(ctx, by, name, message, uri, 0)
}

// AssignWhenReady is Assign with patience for an agent that is just starting,
// as all are when an engine has begun to run; any other state refuses at once.
func (f *Fleet) AssignWhenReady(ctx context.Context, by core.Caller, name, message, uri string, patience time.Duration) (task.Task, error) {
	return f.assign(ctx, by, name, message, uri, patience)
}

func (f *Fleet) assign(ctx context.Context, by core.Caller, name, message, uri string, patience time.Duration) (task.Task, error) {
	if err := errors.Join(checkMessage(message), checkURI(uri)); err != nil {
		return task.Task{}, core.AsError(err)
	}
	m, err := f.find(ctx, by, name)
	if err != nil {
		return task.Task{}, err
	}
	select { // one assignment at a time, or two could both find it idle
	case m.offer <- struct{}{}:
		defer func() { <-m.offer }()
	case <-ctx.Done():
		return task.Task{}, ctx.Err()
	}
	end := time.Now().Add(patience)
	for {
		m.await(ctx, time.Until(end), func() bool { return m.gone || m.rec.Load().Status != Starting })
		err := f.idle(ctx, m)
		if err == nil {
			break
		}
		if m.closing() || m.rec.Load().Status != Starting || ctx.Err() != nil || !time.Now().Before(end) {
			return task.Task{}, err
		}
	}
	return f.give(ctx, by, m, message, uri, m.rec.Load().SessionID)
}

// idle reports why an agent may not be given a task now.
func (f *Fleet) idle(ctx context.Context, m *member) error {
	_, r := m.now()
	a := m.rec.Load()
	switch {
	case m.closing():
		return core.Missing("agent", m.name)
	case r != nil: // also when its record does not say so yet
		return busy(a, "works on task "+r.job.Task.TaskID)
	case a.Pausing || a.Paused:
		return busy(a, "is paused")
	case a.Status == Starting && !m.supervised():
		// No engine runs that could finish starting it: the next one does
		// that first, and the task waits in the queue until then.
	case a.Status != Idle:
		return busy(a, "is "+string(a.Status))
	}
	next, err := f.next(ctx, m)
	if err != nil {
		return err
	}
	if next != "" {
		return busy(a, "is about to start task "+next)
	}
	return nil
}

// next is the task that was assigned and is not over: in the queue, or just
// starting. One that waits there for a person keeps nobody from giving the
// agent other work.
func (f *Fleet) next(ctx context.Context, m *member) (string, error) {
	m.mu.Lock() // a start clears assigned and sets run at once
	id, r := m.assigned, m.run
	m.mu.Unlock()
	if r != nil {
		return r.job.Task.TaskID, nil
	}
	if id == "" {
		return "", nil
	}
	t, err := f.opt.Tasks.Get(ctx, m.tenant, id)
	if err != nil {
		return "", fmt.Errorf("look at the agent's next task: %w", err)
	}
	if t.Status.Terminal() || t.Waiting != "" {
		return "", nil
	}
	return id, nil
}

// CancelTask interrupts the agent's task, or takes the assigned one out of
// the queue. It returns when the agent is free again, at most 5 s later.
func (f *Fleet) CancelTask(ctx context.Context, by core.Caller, name string) (Agent, error) {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return Agent{}, err
	}
	id := m.rec.Load().TaskID
	if id == "" {
		if id, err = f.next(ctx, m); err != nil {
			return Agent{}, err
		}
	}
	if id == "" {
		return Agent{}, core.Errorf(core.Conflict, "agent %s has no task to cancel", name).With("field", "agent").With("value", name)
	}
	if err := f.endTask(ctx, by, m, id, "cancelled at agent "+name+" by "+cut(by.Name, maxCall)); err != nil {
		return Agent{}, err
	}
	return *m.rec.Load(), nil
}

// graceWait is how long an interrupted prompt may take before its process is
// ended instead; with it an agent is free within 5 s.
const graceWait = 4 * time.Second

// endTask cancels a task and waits until the agent has let go of it.
func (f *Fleet) endTask(ctx context.Context, by core.Caller, m *member, id, reason string) error {
	if _, err := f.opt.Swarm.Cancel(ctx, by, id, reason); err != nil && !errors.Is(err, core.Kind(core.Conflict)) {
		return fmt.Errorf("cancel task %s: %w", id, err)
	}
	released := func() bool { return m.run == nil || m.run.job.Task.TaskID != id }
	if m.await(ctx, graceWait, released) {
		return nil
	}
	h, r := m.now()
	if h == nil || r == nil || r.job.Task.TaskID != id {
		return nil
	}
	if err := h.Restart(ctx); err != nil {
		return fmt.Errorf("end the process of agent %s: %w", m.name, err)
	}
	m.await(ctx, time.Second, released)
	return nil
}
