package swarm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/session"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// attempt watches one piece of running work: it freezes, thaws, cancels and
// times it out as the state of the task, its session, its budgets and the
// emergency stop demand.
type attempt struct {
	s         *Swarm
	l         *lease
	work      Work
	limit     time.Duration // timeout_s; 0 is none
	frozen    bool
	unsure    bool // the last stop or start was not acknowledged: it may have taken effect
	cancelled bool
	timedOut  bool
	ending    bool // it was told to end: no more stops and starts
	begun     bool // half of its effect may be there: it is neither held up nor ended before it begins
}

// Patience of an attempt.
const (
	ackTime     = 2 * time.Second  // for one pause or resume to be acknowledged
	earlierTime = 30 * time.Second // for an earlier attempt's work to end
)

// admit waits until the work may begin. What was claimed just before a stop
// or a pause does not start under it, and an attempt does not start beside an
// earlier one of its task that is still being killed. It reports whether to
// begin; else the outcome says why not.
func (m *attempt) admit(ctx context.Context, earlier <-chan struct{}) bool {
	tick := time.NewTicker(leaseTick)
	defer tick.Stop()
	patience := time.NewTimer(earlierTime)
	defer patience.Stop()
	for {
		m.s.beat(m.l)
		m.s.mu.Lock()
		lost := m.s.leases[m.l.ref] != m.l
		want, cancel := m.s.wantFrozen(m.l) && !m.begun, m.l.cancel && (lost || !m.begun)
		m.s.mu.Unlock()
		switch {
		case cancel:
			m.cancelled = true
			return false
		case ctx.Err() != nil:
			return false
		case want != m.frozen:
			m.set(want) // nothing runs: that is acknowledged at once
		}
		if !want && earlier == nil {
			return true
		}
		select {
		case <-m.l.bell:
		case <-tick.C:
		case <-earlier:
			earlier = nil
		case <-patience.C: // it is beyond our control
			earlier = nil
		case <-ctx.Done():
		}
	}
}

// run minds the work until it has ended. ok is false when the lease was lost
// meanwhile, so that there is nothing to report.
func (m *attempt) run(ctx context.Context, log *logPipe) (out task.Outcome, ok bool) {
	began := m.ran()
	timeout := time.NewTimer(m.limit)
	defer timeout.Stop()
	if m.limit == 0 {
		timeout.Stop()
	}
	again := time.NewTimer(0) // what was decided as the work began is seen at once
	defer again.Stop()
	done := ctx.Done()
	for {
		select {
		case <-m.work.Done():
			return m.outcome(m.work.Outcome())
		case <-log.due():
			log.flush(store.IfFull(context.WithoutCancel(ctx), store.Refuse)) // stops must be seen to
		case <-m.l.bell:
			m.look(ctx, again)
		case <-again.C:
			m.look(ctx, again)
		case <-timeout.C:
			if left := m.limit - (m.ran() - began); left > 0 || m.frozen {
				timeout.Reset(max(left, leaseTick))
			} else if !m.ending {
				m.timedOut = true
				m.end(ctx, WhyTimedOut)
			}
		case <-done:
			done = nil
			if m.s.full() { // what else it writes would keep its end from being seen
				log.close()
			}
			if !m.ending {
				m.end(context.WithoutCancel(ctx), WhyClosing)
			}
		}
	}
}

func (m *attempt) ran() time.Duration {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.l.ran(m.s.uptime())
}

// look brings the work to what is wanted of it now. What did not acknowledge
// is shown as such, and asked again soon.
func (m *attempt) look(ctx context.Context, again *time.Timer) {
	m.s.mu.Lock()
	want, cancel, why := m.s.wantFrozen(m.l), m.l.cancel, m.l.why
	m.s.mu.Unlock()
	switch {
	case cancel && !m.cancelled && !m.timedOut:
		m.cancelled = true
		m.end(ctx, why)
	case m.ending || want == m.frozen && !m.unsure:
	case !m.bring(ctx, want):
		again.Reset(leaseTick)
	}
}

// end tells the work to end. A stopped process can't do so in order, so it may
// go on for that, unless the emergency stop forbids even this: then it is for
// the runner to kill it as it stands.
func (m *attempt) end(ctx context.Context, why string) {
	m.ending = true
	if (m.frozen || m.unsure) && !m.s.EStops.On(m.l.tenant) {
		m.bring(ctx, false)
	}
	m.work.Cancel(why)
}

// bring stops the work or lets it go on, and reports whether it acknowledged.
func (m *attempt) bring(ctx context.Context, frozen bool) bool {
	ctx, end := context.WithTimeout(ctx, ackTime)
	defer end()
	act := m.work.Resume
	if frozen {
		act = m.work.Pause
	}
	if m.unsure = act(ctx) != nil; m.unsure {
		return false
	}
	m.set(frozen)
	return true
}

func (m *attempt) set(frozen bool) {
	m.frozen = frozen
	m.s.mu.Lock()
	m.l.freeze(frozen, m.s.uptime())
	m.s.mu.Unlock()
	m.s.ledger.Notify(core.Change{Tenant: m.l.tenant, Kind: "work", ID: m.l.task})
}

// outcome is the work's, or what was done to it.
func (m *attempt) outcome(out task.Outcome) (task.Outcome, bool) {
	m.s.mu.Lock()
	lost := m.s.leases[m.l.ref] != m.l
	why := m.l.why
	m.s.mu.Unlock()
	switch {
	case lost:
		return out, false
	case out.Stands:
	case m.timedOut:
		out.Status, out.Error = task.TimedOut, timedOut()
	case m.cancelled && out.Status != task.Blocked:
		out.Status, out.Error = task.Cancelled, &task.Error{Code: "cancelled", Message: why}
	}
	return out, true
}

// wantFrozen reports whether a task's work should be stopped now. Call it with
// Swarm.mu held.
func (s *shared) wantFrozen(l *lease) bool {
	return s.EStops.On(l.tenant) || l.paused || l.session != "" && s.Sessions.State(l.tenant, l.session) == session.Paused ||
		s.Budgets.Spent(l.tenant, l.spender())
}

// Unpaused lists the tasks of a session (or, with "", of the tenant) whose work
// should stand still and has not acknowledged that.
func (s *leasing) Unpaused(tenant, session string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, l := range s.leases {
		if l.tenant == tenant && (session == "" || l.session == session) && !l.frozen && s.wantFrozen(l) {
			out = append(out, l.task)
		}
	}
	return out
}

// acknowledged lists the tasks of a tenant whose work should stand still and
// does not yet, and counts those whose work does.
func (s *leasing) acknowledged(tenant string) (waiting []string, frozen int) {
	waiting = s.Unpaused(tenant, "")
	slices.Sort(waiting)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		if l.tenant == tenant && l.frozen {
			frozen++
		}
	}
	return waiting, frozen
}

// giveBack returns a task that the closing engine interrupted to the queue. It
// keeps its attempt: the interruption was not its fault. One that its agent was
// given is asked about before it is sent again, as after a crash: it may have had
// its effect. What had ended by itself just then is completed as usual.
func (s *ending) giveBack(ctx context.Context, by core.Caller, t task.Task, out task.Outcome) error {
	if out.Status == task.Succeeded || out.Status == task.Blocked || out.Status == task.TimedOut {
		_, err := s.Complete(ctx, by, t.TaskID, t.Lease, out)
		return err
	}
	return s.underLease(ctx, &t, func(tx *audit.Tx, now *task.Task) error {
		if now.Begun {
			return nil // the next engine finds it as it is
		}
		return s.interrupt(tx, now, "the engine closed", 0)
	})
}

// maxStack bounds the stack in a task's error, in bytes; the log has all of it.
const maxStack = 4096

// panicked ends the work of a runner that panicked, and says so in the log and
// in the task's error: {"stack": "…"}.
func (s *shared) panicked(t *task.Task, work Work, value any, stack []byte) task.Outcome {
	message := core.Cut(fmt.Sprint(value), 4096)
	s.opt.Health.Log().Error("runner panicked", "tenant", t.TenantID, "component", component, "trace", t.TraceID,
		"task", t.TaskID, "kind", t.Kind, "panic", message, "stack", string(stack))
	if work != nil {
		func() {
			defer func() { _ = recover() }() // of the same runner; the task fails all the same
			work.Cancel("its runner panicked")
		}()
	}
	return task.Outcome{Status: task.Failed, Error: &task.Error{
		Code: "runner_panic", Message: message, Details: core.MustEncode(map[string]string{"stack": core.Cut(string(stack), maxStack)}),
	}}
}
