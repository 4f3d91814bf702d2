package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

// member is what the engine holds in memory about one agent beside its record.
type member struct {
	tenant, name string
	wake         func() // tells the scheduler that the agent may be free; must not block

	rec   atomic.Pointer[Agent] // newest committed record, never modified
	bell  chan struct{}         // one slot: the supervisor looks again
	turn  chan struct{}         // one slot: who may pause or resume the runtime
	offer chan struct{}         // one slot: who may hand the agent a task

	done chan struct{} // closed when the supervisor has ended

	core.Condition // of rec, desk and
	moment
	desk desk
}

// moment is how things stand with an agent.
type moment struct {
	health   Health    // newest from the runtime
	handle   Handle    // nil until opened
	run      *run      // the prompt under way
	stale    bool      // to be opened, or opened anew
	opening  int       // counts openings: reports of an older one are dropped
	openAt   time.Time // not before: back-off after a failure
	openWait time.Duration
	poked    bool       // somebody wants it, so that it is tried again
	gone     bool       // being deleted, or the engine closes: nothing new starts
	watched  bool       // a supervisor is there, of an engine that keeps this agent going
	queue    []*Message // what waits for it, the next first; replaced, never modified
	assigned string     // task given to it that may not have started yet; a start clears it and sets run at once
	holds    holder     // why its process is to stand still
	held     bool       // the runtime has acknowledged that it does
	unsure   bool       // its last pause or resume failed, and may have taken effect
	stop     context.CancelFunc
}

func (f *roster) newMember(a *Agent) *member {
	m := &member{
		tenant: a.TenantID, name: a.Name, wake: f.opt.Swarm.Wake,
		bell: make(chan struct{}, 1), turn: make(chan struct{}, 1), offer: make(chan struct{}, 1),
		done: make(chan struct{}), moment: moment{health: Health{Status: Starting, Trouble: a.Trouble}, stale: true},
	}
	m.rec.Store(a)
	return m
}

func (m *member) self() core.Caller { return core.Self(m.tenant, "fleet") }

// speaker is the agent itself, as the author of what it causes.
func (m *member) speaker() core.Caller {
	return core.Caller{Tenant: m.tenant, Name: m.name, Kind: core.Agent, Door: core.DoorEngine}
}

// record audits something about the agent that changes nothing of its record.
func (m *member) record(tx *audit.Tx, n record.Event) error {
	_, err := tx.Record(audit.Entry{Type: n.Type, Trace: n.Trace, Subject: "agent", ID: m.name, Detail: n.Detail})
	return err
}

// status is the one place that says how an agent is: an operator's stop rules
// over a broken runtime, that over work, and work over a healthy runtime.
func (m *member) status(a *Agent) (AgentStatus, string) {
	h := m.look().health
	switch {
	case a.Stopped:
		return Offline, a.Reason
	case a.TaskID != "" && h.Status != Offline && h.Status != Failed:
		return Busy, ""
	}
	return h.Status, core.ClipTo(cmp.Or(h.Reason, h.Trouble.reason()), maxReason)
}

// report takes a change of health from the runtime. It never blocks: only the
// newest one counts.
func (m *member) report(opening int, h Health) {
	if !slices.Contains(statuses[:], h.Status) {
		h = Health{Status: Failed, Reason: "the runtime reported the unknown status " + string(h.Status)}
	}
	h.Offers = h.Offers.bounded()
	m.Change(func() {
		if opening == m.opening {
			m.health = h
		}
	})
	m.ring()
}

// renew has the supervisor open the agent anew once nothing runs in it.
func (m *member) renew() {
	m.Change(func() { m.stale, m.openAt = true, time.Time{} })
	m.ring()
}

func (m *member) ring() { loop.Ring(m.bell) }

// poke has an agent tried again that has a trouble, as an operator wants it for something.
func (m *member) poke(by core.Caller) {
	if a := m.rec.Load(); a.Trouble != nil && !a.Stopped && by.Kind == core.Operator {
		m.Change(func() { m.poked = true })
		m.ring()
	}
}

// saved takes over a committed record; it runs in commit order. The supervisor
// then does what the record asks for.
func (m *member) saved(a *Agent) {
	m.Change(func() { m.rec.Store(a) })
	m.wake()
	m.ring()
}

// await returns when ok holds, and reports false when ctx or d ended first.
func (m *member) await(ctx context.Context, d time.Duration, ok func() bool) bool {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	return m.Until(ctx, ok) == nil
}

// look is how things stand now.
func (m *member) look() (now moment) {
	m.Look(func() { now = m.moment })
	return now
}

// now returns the open handle and the prompt under way; each may be nil.
func (m *member) now() (Handle, *run) {
	now := m.look()
	return now.handle, now.run
}

// free says whether a prompt could start now, and why not.
func (m *member) free() (bool, string) {
	a, now := m.rec.Load(), m.look()
	switch {
	case now.gone:
		return false, "agent " + m.name + " is being deleted"
	case now.run != nil:
		return false, "agent " + m.name + " works on " + now.run.job.Task.TaskID
	case a.Stopped || a.Status == Offline || a.Status == Failed:
		return false, describe(a)
	case a.Pausing || a.Paused || now.holds != 0 || now.held || now.unsure:
		return false, "agent " + m.name + " is paused"
	case now.handle == nil || now.stale || a.Status != Idle:
		return false, describe(a)
	}
	return true, ""
}

func describe(a *Agent) string {
	s := "agent " + a.Name + " is " + string(a.Status)
	if a.Reason != "" {
		s += ": " + a.Reason
	}
	return s
}

// holder is a set of reasons for which an agent's process stands still. It
// goes on when the last one is gone.
type holder uint8

const (
	byOperator holder = 1 << iota // the agent is paused
	byTask                        // its task or session is paused
	byFreeze                      // emergency stop
)

// hold adds or removes a reason and returns when the runtime has acknowledged
// what follows from it. On an error the reason stays as asked, so that no tool
// call goes through meanwhile and another call tries again.
func (m *member) hold(ctx context.Context, why holder, on bool) error {
	m.reason(why, on)
	return m.applyHolds(ctx)
}

// reason adds or removes a reason.
func (m *member) reason(why holder, on bool) {
	var was, now holder
	m.Change(func() {
		was = m.holds
		if m.holds &^= why; on {
			m.holds |= why
		}
		now = m.holds
	})
	if now != was { // else each freeze would have the scheduler freeze again
		m.wake()
	}
}

// applyHolds pauses or resumes the runtime where it differs from what the
// reasons ask for.
func (m *member) applyHolds(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return fmt.Errorf("pause or resume agent %s: %w", m.name, ctx.Err())
	}
	now := m.look()
	want := now.holds != 0
	if want == now.held && !now.unsure {
		return nil
	}
	if now.handle != nil {
		act, verb := now.handle.Resume, "resume"
		if want {
			act, verb = now.handle.Pause, "pause"
		}
		if err := act(ctx); err != nil {
			m.Change(func() { m.unsure = true })
			return fmt.Errorf("%s agent %s: %w", verb, m.name, err)
		}
	}
	m.Change(func() { m.held, m.unsure = want, false })
	m.wake()
	return nil
}

// Freeze makes every agent of a tenant stand still, idle ones too, and names
// those that did not acknowledge before ctx ended (estop.Freezer).
func (f *Fleet) Freeze(ctx context.Context, tenant string) []string {
	members := f.members(tenant)
	late := make([]bool, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { late[i] = m.hold(ctx, byFreeze, true) != nil })
	}
	all.Wait()
	var names []string
	for i, m := range members {
		if late[i] {
			names = append(names, m.name)
			m.ring() // the supervisor keeps trying
		}
	}
	return names
}

// Thaw ends a freeze. What an operator or a session paused stays paused.
func (f *Fleet) Thaw(ctx context.Context, tenant string) {
	var all sync.WaitGroup
	for _, m := range f.members(tenant) {
		all.Go(func() {
			if m.hold(ctx, byFreeze, false) != nil {
				m.ring()
			}
		})
	}
	all.Wait()
}

// ackLimit bounds one try of a supervisor to pause or resume a runtime, so
// that its other duties go on.
const ackLimit = 3 * time.Second
