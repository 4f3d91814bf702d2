package fleet

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/engine/core"
)

// member is what the engine holds in memory about one agent beside its record.
type member struct {
	tenant, name string
	wake         func() // tells the scheduler that the agent may be free; must not block

	rec   atomic.Pointer[Agent] // newest committed record, never modified
	bell  chan struct{}         // one slot: the supervisor looks again
	turn  chan struct{}         // one slot: who may pause or resume the runtime
	offer chan struct{}         // one slot: who may hand the agent a task

	mu       sync.Mutex
	health   Health    // newest from the runtime
	handle   Handle    // nil until opened
	run      *run      // the prompt under way
	stale    bool      // to be opened, or opened anew
	opening  int       // counts openings: reports of an older one are dropped
	openAt   time.Time // not before: back-off after a failure
	openWait time.Duration
	gone     bool          // being deleted, or the engine closes: nothing new starts
	watched  bool          // a supervisor is there
	assigned string        // task given to it that may not have started yet
	holds    holder        // why its process is to stand still
	held     bool          // the runtime has acknowledged that it does
	unsure   bool          // its last pause or resume failed, and may have taken effect
	moved    chan struct{} // closed and replaced whenever something above or rec changes
	done     chan struct{} // closed when the supervisor has ended
	stop     context.CancelFunc
}

func (f *Fleet) newMember(a *Agent) *member {
	m := &member{
		tenant: a.TenantID, name: a.Name, wake: f.opt.Swarm.Wake,
		bell: make(chan struct{}, 1), turn: make(chan struct{}, 1), offer: make(chan struct{}, 1),
		health: Health{Status: Starting}, stale: true, moved: make(chan struct{}), done: make(chan struct{}),
	}
	m.rec.Store(a)
	return m
}

func (m *member) self() core.Caller { return core.Self(m.tenant, "fleet") }

// speaker is the agent itself, as the author of what it causes.
func (m *member) speaker() core.Caller {
	return core.Caller{Tenant: m.tenant, Name: m.name, Kind: core.Agent, Door: core.DoorEngine}
}

// status is the one place that says how an agent is: an operator's stop rules
// over a broken runtime, that over work, and work over a healthy runtime.
func (m *member) status(a *Agent) (AgentStatus, string) {
	m.mu.Lock()
	h := m.health
	m.mu.Unlock()
	switch {
	case a.Stopped:
		return Offline, a.Reason
	case h.Status == Offline || h.Status == Failed:
		return h.Status, cut(h.Reason, maxReason)
	case a.TaskID != "":
		return Busy, ""
	}
	return h.Status, cut(h.Reason, maxReason)
}

// report takes a change of health from the runtime. It never blocks: only the
// newest one counts.
func (m *member) report(opening int, h Health) {
	switch h.Status {
	case Starting, Idle, Busy, Offline, Failed:
	default:
		h = Health{Status: Failed, Reason: "the runtime reported the unknown status " + string(h.Status)}
	}
	m.mu.Lock()
	if opening == m.opening {
		m.health = h
	}
	m.mu.Unlock()
	m.ring()
}

// renew has the supervisor open the agent anew once nothing runs in it.
func (m *member) renew() {
	m.mu.Lock()
	m.stale, m.openAt = true, time.Time{}
	m.mu.Unlock()
	m.ring()
}

func (m *member) ring() {
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

// saved takes over a committed record; it runs in commit order. The supervisor
// then does what the record asks for.
func (m *member) saved(a *Agent) {
	m.rec.Store(a)
	m.mu.Lock()
	m.move()
	m.mu.Unlock()
	m.ring()
}

// move wakes whoever waits for a state; m.mu is held.
func (m *member) move() {
	close(m.moved)
	m.moved = make(chan struct{})
	m.wake()
}

// await returns when ok holds, and reports false when ctx or d ended first. ok
// is called with m.mu held.
func (m *member) await(ctx context.Context, d time.Duration, ok func() bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		m.mu.Lock()
		yes, moved := ok(), m.moved
		m.mu.Unlock()
		if yes {
			return true
		}
		select {
		case <-moved:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (m *member) closing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone
}

// supervised says whether an engine runs that keeps this agent going.
func (m *member) supervised() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.watched
}

// now returns the open handle and the prompt under way; each may be nil.
func (m *member) now() (Handle, *run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.handle, m.run
}

// free says whether a prompt could start now, and why not.
func (m *member) free() (bool, string) {
	a := m.rec.Load()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.gone:
		return false, "agent " + m.name + " is being deleted"
	case m.run != nil:
		return false, "agent " + m.name + " works on " + m.run.job.Task.TaskID
	case a.Stopped || a.Status == Offline || a.Status == Failed:
		return false, describe(a)
	case a.Pausing || a.Paused || m.holds != 0 || m.held || m.unsure:
		return false, "agent " + m.name + " is paused"
	case m.handle == nil || m.stale || a.Status != Idle:
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
