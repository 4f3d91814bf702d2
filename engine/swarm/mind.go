package swarm

import (
	"context"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// minder watches one piece of running work: it freezes, thaws, cancels and
// times it out as the state of the task, its session, its budgets and the
// emergency stop demand.
type minder struct {
	s         *Swarm
	l         *lease
	work      Work
	left      time.Duration // of the time-out, while not frozen; 0 is none
	frozen    bool
	cancelled bool
	timedOut  bool
}

func (m *minder) run(ctx context.Context, log *logPipe) (Outcome, bool) {
	var timeout <-chan time.Time
	var started time.Time
	if m.left > 0 {
		timer := time.NewTimer(m.left)
		defer timer.Stop()
		timeout, started = timer.C, time.Now()
	}
	limit := m.left
	var pausedFor time.Duration
	var pausedAt time.Time
	done := ctx.Done()
	m.l.poke() // look once at what was decided before the work began
	for {
		select {
		case <-m.work.Done():
			return m.outcome()
		case <-log.due():
			log.flush(ctx)
		case <-m.l.bell:
			was := m.frozen
			m.steer(ctx)
			if m.frozen && !was {
				pausedAt = time.Now()
			} else if was && !m.frozen {
				pausedFor += time.Since(pausedAt)
			}
		case <-timeout:
			// Time spent frozen does not count.
			over := pausedFor
			if m.frozen {
				over += time.Since(pausedAt)
			}
			if rest := limit + over - time.Since(started); rest > 0 || m.frozen {
				timer := time.NewTimer(max(rest, leaseTick))
				defer timer.Stop()
				timeout = timer.C
				continue
			}
			m.timedOut, timeout = true, nil
			m.work.Cancel("timed out")
		case <-done:
			done = nil
			m.thaw(context.WithoutCancel(ctx)) // a stopped process can't end in order
			m.work.Cancel("the engine closes")
		}
	}
}

// steer brings the work to what is wanted of it now.
func (m *minder) steer(ctx context.Context) {
	m.s.mu.Lock()
	want, cancel, why := m.s.wantFrozen(m.l), m.l.cancel, m.l.why
	m.s.mu.Unlock()
	if cancel && !m.cancelled {
		m.cancelled = true
		m.thaw(ctx)
		m.work.Cancel(why)
		return
	}
	if m.cancelled || want == m.frozen {
		return
	}
	if !want {
		m.thaw(ctx)
		return
	}
	stop, end := context.WithTimeout(ctx, 2*time.Second)
	defer end()
	if err := m.work.Pause(stop); err == nil {
		m.set(true)
		return
	}
	// Not acknowledged: shown as such, and tried again at the next look.
	go func() {
		time.Sleep(leaseTick)
		m.l.poke()
	}()
}

func (m *minder) thaw(ctx context.Context) {
	if !m.frozen {
		return
	}
	if err := m.work.Resume(ctx); err == nil {
		m.set(false)
	}
}

func (m *minder) set(frozen bool) {
	m.frozen = frozen
	m.s.mu.Lock()
	m.l.frozen = frozen
	m.s.mu.Unlock()
	m.s.told(m.l)
}

// outcome is the work's, or what was done to it.
func (m *minder) outcome() (Outcome, bool) {
	out := m.work.Outcome()
	m.s.mu.Lock()
	lost := m.s.leases[m.l.task] != m.l
	why := m.l.why
	m.s.mu.Unlock()
	switch {
	case lost:
		return out, false
	case m.timedOut:
		out.Status = TimedOut
		out.Error = &TaskError{Code: "timed_out", Message: "the attempt ran longer than timeout_s", Retryable: true}
	case m.cancelled && out.Status != Blocked:
		out.Status, out.Error = Cancelled, &TaskError{Code: "cancelled", Message: why}
	}
	return out, true
}

// wantFrozen reports whether a task's work should be stopped now. Call it with
// Swarm.mu held.
func (s *Swarm) wantFrozen(l *lease) bool {
	w := s.world(l.tenant)
	return w.estop.On || l.paused || l.session != "" && w.sessions[l.session] == SessionPaused ||
		w.reached(lane{l.session, l.agent}) != ""
}

// unpaused lists the tasks of a paused session (or, with "", of the tenant)
// whose work has not acknowledged its stop.
func (s *Swarm) unpaused(tenant, session string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for id, l := range s.leases {
		if l.tenant == tenant && (session == "" || l.session == session) && !l.frozen && s.wantFrozen(l) {
			out = append(out, id)
		}
	}
	return out
}

func (s *Swarm) frozenCount(tenant string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		if l.tenant == tenant && l.frozen {
			n++
		}
	}
	return n
}

// giveBack returns a task that the closing engine interrupted to the queue. It
// keeps its attempt: the interruption was not its fault. What had ended by
// itself just then is completed as usual.
func (s *Swarm) giveBack(ctx context.Context, by core.Caller, t Task, out Outcome) error {
	if out.Status == Succeeded || out.Status == Blocked || out.Status == TimedOut {
		_, err := s.Complete(ctx, by, t.TaskID, t.Lease, out)
		return err
	}
	return s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		var now Task
		if err := loadTask(tx, taskSeq(t.TaskID), &now); err != nil {
			return err
		}
		if now.Status != Running || now.Lease != t.Lease {
			return errLate
		}
		tx.OnCommit(func() { s.released(t.TaskID) })
		if now.CancelRequested {
			return s.end(tx, &now, Result{Status: Cancelled, Error: &TaskError{Code: "cancelled", Message: "cancelled"}})
		}
		if err := s.voidGates(tx, &now, "the engine closed"); err != nil {
			return err
		}
		setWaiting(tx, &now, false)
		now.Status, now.Worker, now.Lease, now.ApprovalID, now.Paused = Queued, "", 0, "", false
		now.RunAt = tx.Now()
		if err := s.move(tx, &now, Running, "task.interrupted", core.MustEncode(map[string]string{"reason": "the engine closed"})); err != nil {
			return err
		}
		return s.schedule(tx, &now)
	})
}
