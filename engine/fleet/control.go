package fleet

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
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
	return f.again(ctx, by, m, "agent.restarted")
}

func (f *Fleet) again(ctx context.Context, by core.Caller, m *member, event string) (Agent, error) {
	h, r := m.now()
	if r != nil {
		r.end(restarted, "the agent was restarted by "+by.Name)
	}
	a, err := f.change(ctx, by, m, record.Event{Type: event}, func(_ *audit.Tx, a *Agent) error {
		a.Stopped, a.Reason = false, ""
		m.mu.Lock()
		m.health.Status, m.health.Reason = Starting, ""
		m.mu.Unlock()
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
	m.mu.Lock()
	m.held, m.unsure = false, false // a new process does not stand still
	m.mu.Unlock()
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
	reason := "stopped by " + cut(by.Name, maxCall)
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
	watched := m.supervised()
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
	if m.supervised() {
		m.await(ctx, ackWait, func() bool { return m.gone || m.holds&byOperator == 0 && (m.holds != 0 || !m.held && !m.unsure) })
	}
	return *m.rec.Load(), nil
}
