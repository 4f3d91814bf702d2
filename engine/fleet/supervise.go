package fleet

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
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Back-off between tries to open an agent or to have it pause.
const (
	firstWait = 250 * time.Millisecond
	lastWait  = 30 * time.Second
)

// supervise opens one agent, keeps its record true and its runtime in step
// with the record, and closes it when ctx or the agent ends.
func (f *Fleet) supervise(ctx context.Context, m *member) {
	// A full disk must not keep it from pausing and ending the agent: what it
	// can't record it tries again.
	ctx, stop := context.WithCancel(store.IfFull(ctx, store.Refuse))
	defer stop()
	barred := false
	m.Change(func() {
		if barred = m.gone || m.watched; !barred {
			m.watched, m.stop = true, stop
		}
	})
	if barred {
		return
	}
	defer close(m.done)
	wait, retry := firstWait, time.NewTimer(0)
	defer retry.Stop()
	var learning sync.WaitGroup
	defer learning.Wait()
	learned := false
	for ctx.Err() == nil {
		select {
		case <-retry.C:
		case <-m.bell:
		case <-ctx.Done():
			continue
		}
		err := health.Caught(func() error {
			f.reopen(ctx, m)
			return f.settle(ctx, m)
		})
		if ctx.Err() == nil {
			f.opt.Health.Report(m.tenant, component, "agent "+m.name, err)
		}
		if err != nil {
			retry.Reset(wait)
			wait = min(2*wait, lastWait)
		} else {
			wait = firstWait
			f.opt.Health.Clear(m.tenant, component, "agent "+m.name)
		}
		if !learned && m.rec.Load().Status == Idle { // its server answers
			learned = true
			learning.Go(func() { f.learn(ctx, m) })
		}
	}

	var h Handle
	var r *run
	m.Change(func() { h, r, m.gone, m.handle = m.handle, m.run, true, nil })
	m.wake()
	if h != nil {
		_ = h.Close() // a failure leaves nothing to do: the process tree is swept
	}
	if r != nil {
		<-r.done
	}
}

// reopen opens an agent that is not open, or whose making has changed since.
// A prompt under way is let finish first.
func (f *Fleet) reopen(ctx context.Context, m *member) {
	turn := 0
	var old Handle
	m.Change(func() {
		if m.stale && m.run == nil && !time.Now().Before(m.openAt) {
			old, m.stale, m.handle = m.handle, false, nil
			m.opening++
			turn = m.opening
			m.health = Health{Status: Starting, Restarts: m.health.Restarts, Trouble: m.rec.Load().Trouble}
		}
	})
	if turn == 0 {
		return
	}
	if old != nil {
		_ = old.Close()
	}
	a := m.rec.Load()
	var h Handle
	err := error(core.Invalid("runtime", a.Runtime, f.runtimes()))
	rt, ok := f.opt.Runtimes[a.Runtime]
	if ok && f.opt.Lacks != nil {
		err = f.opt.Lacks(a.TenantID, a.Name)
		ok = err == nil
	}
	if ok {
		// A runtime that was closed may still report; only the newest counts.
		h, err = rt.Open(ctx, *a, func(h Health) { m.report(turn, h) })
	}
	if err != nil {
		m.Change(func() {
			m.openWait = min(max(2*m.openWait, firstWait), lastWait)
			m.stale, m.openAt = true, time.Now().Add(m.openWait)
		})
		time.AfterFunc(m.openWait, m.ring)
		m.report(turn, Health{Status: Failed, Reason: "can't open: " + err.Error(), Trouble: a.Trouble})
		return
	}
	m.Change(func() { m.handle, m.held, m.unsure, m.openWait = h, false, false, 0 })
	f.overhear(m, h)
	m.wake()
}

// settle does what the record and the runtime's health ask for now. An error
// means: try again later.
func (f *Fleet) settle(ctx context.Context, m *member) error {
	a := m.rec.Load()
	m.reason(byOperator, a.Pausing || a.Paused)
	var held error
	if h, r := m.now(); h != nil {
		poked := false
		m.Change(func() { poked, m.poked = m.poked && r == nil, false })
		if poked {
			if err := h.Restart(ctx); err != nil {
				return fmt.Errorf("try agent %s again: %w", m.name, err)
			}
		}
		try, stop := context.WithTimeout(ctx, ackLimit)
		held = m.applyHolds(try)
		stop()
		if held == nil && a.Pausing {
			if err := f.acknowledge(ctx, m); err != nil {
				return err
			}
		}
	}
	if err := f.dropLost(ctx, m); err != nil {
		return err
	}
	if err := f.keepHealth(ctx, m); err != nil {
		return err
	}
	return errors.Join(held, f.deliver(ctx, m))
}

// dropLost frees an agent whose record names a task that nothing works on:
// the end of its run could not be written when it ended.
func (f *Fleet) dropLost(ctx context.Context, m *member) error {
	lost := func(a *Agent) bool {
		_, r := m.now() // set before a record names a task, cleared after
		return r == nil && a.TaskID != ""
	}
	if !lost(m.rec.Load()) {
		return nil
	}
	_, err := f.change(ctx, m.self(), m, record.Event{Type: "agent.recovered"}, func(tx *audit.Tx, a *Agent) error {
		if !lost(a) {
			return errSame
		}
		return f.clear(tx, a)
	})
	return err
}

// acknowledge records that a pause is in effect.
func (f *Fleet) acknowledge(ctx context.Context, m *member) error {
	_, err := f.change(store.IfFull(ctx, store.UseReserve), m.self(), m, record.Event{Type: "agent.paused"}, func(_ *audit.Tx, a *Agent) error {
		if !a.Pausing {
			return errSame
		}
		a.Pausing, a.Paused = false, true
		return nil
	})
	return err
}

// keepHealth writes the runtime's health into the record where it differs.
func (f *Fleet) keepHealth(ctx context.Context, m *member) error {
	seen := m.rec.Load()
	h, differs := m.news(seen)
	if !differs {
		return nil
	}
	event, detail := "agent.status", map[string]any{}
	if h.Status == seen.Status && h.Reason == seen.Reason {
		event = "agent.process" // another process, in the same state
		if h.PID == seen.PID && h.Offers != nil && !h.Offers.same(seen.Offers) {
			event = "agent.offers" // the same process, set to something else
			detail["mode"], detail["model"], detail["commands"] = h.Offers.Mode, h.Offers.Model, len(h.Offers.Commands)
		}
	}
	_, err := f.change(ctx, m.self(), m, record.Event{Type: event, Detail: detail}, func(_ *audit.Tx, a *Agent) error {
		h, differs := m.news(a)
		if !differs {
			return errSame
		}
		detail["from"], detail["to"] = a.Status, h.Status
		if h.Reason != "" {
			detail["reason"] = h.Reason
		}
		if h.PID != 0 {
			detail["pid"] = h.PID
			a.Lacks = core.ClipTo(h.Lacks, maxCall)
			if a.Lacks != "" {
				detail["lacks"] = a.Lacks
			}
		}
		if h.Offers != nil {
			a.Offers = h.Offers
		}
		if a.Trouble != nil { // it was told of before
			detail["since"] = a.Trouble.Since
		}
		a.Trouble = h.Trouble
		a.PID, a.Restarts, a.Said = h.PID, h.Restarts, core.ClipTo(h.Said, maxReason)
		if h.WorkspaceID != "" {
			a.WorkspaceID = core.ClipTo(h.WorkspaceID, maxCall)
		}
		return nil
	})
	return err
}

// news is the health that a record should show, and whether it shows another.
func (m *member) news(a *Agent) (Health, bool) {
	h := m.look().health
	h.Status, h.Reason = m.status(a)
	if a.Stopped {
		h.PID = 0
	}
	return h, h.Status != a.Status || !h.Trouble.same(a.Trouble) || h.Reason != a.Reason || h.PID != a.PID || h.Restarts != a.Restarts || core.ClipTo(h.Said, maxReason) != a.Said ||
		h.Offers != nil && !h.Offers.same(a.Offers) ||
		h.WorkspaceID != "" && core.ClipTo(h.WorkspaceID, maxCall) != a.WorkspaceID
}

// Recover repairs what the last engine left: no run of it is alive, so no
// agent is busy and no tool call's question can be answered to anyone. The
// swarm queues or fails the tasks of those runs itself, later.
func (f *Fleet) Recover(ctx context.Context) error {
	err := f.everywhere(ctx, func(tenant string) error { // also one without agents may have calls from outside
		return f.opt.Ledger.Update(ctx, core.Self(tenant, "fleet"), func(tx *audit.Tx) error {
			if err := f.opt.Judge.Void(tx, deadCall, "the engine was restarted, so the agent's run is gone"); err != nil {
				return err
			}
			for _, m := range f.members(tenant) {
				if err := f.recoverAgent(tx, m); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("recover the fleet: %w", err)
	}
	return nil
}

func deadCall(a *judge.Approval) bool { return a.Gate == judge.GateTool && a.Status == judge.Open }

func (f *Fleet) recoverAgent(tx *audit.Tx, m *member) error {
	old, err := f.agents.Load(tx, m.name)
	if err != nil || old == nil {
		return err
	}
	if err := f.untellIn(tx, m); err != nil || !old.runs() {
		return err
	}
	a := *old
	a.letGo()
	a.Status, a.Reason = m.status(&a)
	return f.agents.Save(tx, record.Event{Type: "agent.recovered", Detail: map[string]any{"from": old.Status, "task_id": old.TaskID}}, old, &a)
}
