package swarm

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/session"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// Cancel ends a queued task at once; a running one is interrupted, and is
// cancelled when its work has stopped. A task that is over is a CONFLICT.
func (s *ending) Cancel(ctx context.Context, by core.Caller, id, reason string) (task.Task, error) {
	if reason == "" {
		reason = "cancelled by " + by.Name
	}
	reason = core.Cut(reason, 1000)
	t, err := s.change(store.IfFull(ctx, store.UseReserve), by, id, func(tx *audit.Tx, t *task.Task) error {
		if t.Status.Terminal() {
			return core.Errorf(core.Conflict, "task %s is %s already", id, t.Status).With("field", "status")
		}
		if t.CancelRequested {
			return core.Errorf(core.Conflict, "task %s is being cancelled already", id).With("field", "status")
		}
		return s.cancel(tx, t, reason)
	})
	if errors.Is(err, store.ErrFull) && s.cutOff(by.Tenant, reason, func(l *lease) bool { return l.task == id }) {
		err = fmt.Errorf("task %s: its work is ended, which is recorded once there is space: %w", id, err)
	}
	return t, err
}

// cutOff ends running work whose end the disk has no room to record: it is with
// its outcome. It reports whether there was any.
func (s *leasing) cutOff(tenant, reason string, which func(*lease) bool) (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		if l.tenant == tenant && l.local && which(l) {
			l.cancel, l.why, found = true, reason, true
			l.poke()
		}
	}
	return found
}

// cancel ends a task that is not over, or asks its running work to end.
func (s *ending) cancel(tx *audit.Tx, t *task.Task, reason string) error {
	if t.CancelRequested {
		return nil
	}
	if err := s.voidGates(tx, t, reason); err != nil {
		return err
	}
	if t.Status == task.Running && s.running(t) {
		t.CancelRequested = true
		t.SetWaiting(tx, false)
		r := refOf(t)
		tx.OnCommit(func() { s.explain(r, reason) })
		return s.tasks.Move(tx, t, task.Running, "task.cancel_requested", core.MustEncode(map[string]string{"reason_sha256": core.SHA256(reason)}))
	}
	if t.Status == task.Running {
		if err := s.leave(tx, t); err != nil {
			return err
		}
	}
	if err := parked.Delete(tx, record.Seq(t.Seq())); err != nil {
		return err
	}
	return s.end(tx, t, task.Result{Status: task.Cancelled, Error: &task.Error{Code: "cancelled", Message: reason}})
}

// running reports whether this engine holds live work of a task, which has to
// end first. That of a claim that is on its way to the disk begins before the commit
// that asks.
func (s *leasing) running(t *task.Task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Worker == localWorker && t.Lease > s.granted[t.TenantID] {
		return true
	}
	l := s.leases[refOf(t)]
	return l != nil && l.local && l.id == t.Lease
}

func (s *leasing) explain(r ref, why string) {
	s.mu.Lock()
	if l := s.leases[r]; l != nil {
		l.why = why
	}
	s.mu.Unlock()
}

func (s *leasing) whyCancelled(t *task.Task) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[refOf(t)]; l != nil && l.why != "" {
		return l.why
	}
	return "cancelled"
}

// Undo takes a dispatch back as long as nobody has claimed the task.
func (s *ending) Undo(ctx context.Context, by core.Caller, id string) (task.Task, error) {
	return s.change(ctx, by, id, func(tx *audit.Tx, t *task.Task) error {
		if t.Status != task.Queued || !t.StartedAt.IsZero() {
			return core.Errorf(core.Conflict, "task %s was claimed already (%s): cancel it instead", id, t.Status).With("field", "status")
		}
		if err := s.voidGates(tx, t, "dispatch undone"); err != nil {
			return err
		}
		return s.end(tx, t, task.Result{Status: task.Cancelled, Error: &task.Error{Code: "undone", Message: "dispatch undone by " + by.Name}})
	})
}

// Retry dispatches a task that did not succeed once more, as a new task with
// the same input and trace; the old one stays as it ended.
func (s *Swarm) Retry(ctx context.Context, by core.Caller, id string) (task.Task, error) {
	t, err := s.tasks.Whole(ctx, by, id)
	if err != nil {
		return task.Task{}, err
	}
	if !t.Status.Terminal() || t.Status == task.Succeeded {
		return task.Task{}, core.Errorf(core.Conflict, "task %s is %s: only one that failed, was blocked, cancelled or timed out can be retried", id, t.Status).With("field", "status")
	}
	if t.RetriedAs != "" {
		return task.Task{}, retried(&t)
	}
	if core.IsErased(t.Input) {
		return task.Task{}, core.Errorf(core.Conflict, "task %s: its input was erased", id).With("field", "input")
	}
	d := Dispatch{
		Kind: t.Kind, Input: t.Input, Priority: &t.Priority, MaxAttempts: &t.MaxAttempts, Session: t.SessionID,
		Parent: t.ParentTaskID, Agent: t.Agent, Trace: t.TraceID, Intent: t.Intent, Expect: t.Expect, retryOf: t.TaskID,
	}
	d.Timeout, d.StartTimeout = seconds(t.TimeoutS), seconds(t.StartTimeoutS)
	if r, err := s.runner(t.Kind); err == nil {
		if r, ok := r.(renewer); ok {
			d.Input, d.Agent = r.Renew(t.Input), ""
		}
	}
	d.Also = func(tx *audit.Tx, made *task.Task) error {
		old, err := s.tasks.In(tx, id)
		if err == nil && old.RetriedAs != "" { // by somebody else, meanwhile
			err = retried(&old)
		}
		if err != nil {
			return err
		}
		old.RetriedAs = made.TaskID
		return s.tasks.Note(tx, &old, "task.retried")
	}
	made, err := s.Dispatch(ctx, by, d)
	if err != nil {
		return task.Task{}, fmt.Errorf("retry task %s: %w", id, err)
	}
	return made, nil
}

// retried says that a task is not tried again twice.
func retried(t *task.Task) error {
	return core.Errorf(core.Conflict, "task %s was retried as %s: retry that one", t.TaskID, t.RetriedAs).With("field", "retried_as")
}

// PauseTask stops the work of a running task; it is acknowledged when Why
// says "pause" and the task's log stands still. The pause holds for its
// further attempts too, until it is resumed.
func (s *ending) PauseTask(ctx context.Context, by core.Caller, id, reason string) (task.Task, error) {
	return s.setPaused(store.IfFull(ctx, store.UseReserve), by, id, true, reason)
}

// ResumeTask continues it.
func (s *ending) ResumeTask(ctx context.Context, by core.Caller, id string) (task.Task, error) {
	return s.setPaused(ctx, by, id, false, "")
}

func (s *ending) setPaused(ctx context.Context, by core.Caller, id string, paused bool, reason string) (task.Task, error) {
	return s.change(ctx, by, id, func(tx *audit.Tx, t *task.Task) error {
		between := t.Status == task.Queued && t.Paused // two attempts
		if t.Status != task.Running && !between {
			return core.Errorf(core.Conflict, "task %s is %s: only a running one can be paused or resumed", id, t.Status).With("field", "status")
		}
		if t.Paused == paused {
			return core.Errorf(core.Conflict, "task %s is %s already", id, map[bool]string{true: "paused", false: "running"}[paused]).With("field", "paused")
		}
		t.Paused = paused
		event := map[bool]string{true: "task.paused", false: "task.resumed"}[paused]
		return s.tasks.Move(tx, t, t.Status, event, core.MustEncode(map[string]string{"reason_sha256": core.SHA256(reason)}))
	})
}

// change loads a task, lets fn change it in a transaction, and returns it.
func (s *shared) change(ctx context.Context, by core.Caller, id string, fn func(*audit.Tx, *task.Task) error) (task.Task, error) {
	seq, err := s.ledger.LocalSeq(ctx, by, core.TaskPrefix, id)
	if err != nil {
		return task.Task{}, err
	}
	var t task.Task
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		t = task.Task{}
		if err := s.tasks.Load(tx, seq, &t); err != nil {
			return err
		}
		return fn(tx, &t)
	})
	if err != nil {
		return task.Task{}, err
	}
	return t, nil
}

var _ session.Work = (*Swarm)(nil)

// SessionChanged implements session.Work: running tasks look again, and what a
// stopped session queued is not claimed any more.
func (s *leasing) SessionChanged(tenant, id string, now session.State) {
	if now == session.Stopped {
		s.queue.Forget(tenant, id)
	}
	s.poke(tenant)
}

func (s *leasing) CutOffSession(tenant, id, why string) {
	s.cutOff(tenant, why, func(l *lease) bool { return l.session == id })
}

// CancelSession implements session.Work. A stopped session takes no new tasks,
// and a running one that is being cancelled does not come back, so this ends.
func (s *ending) CancelSession(ctx context.Context, by core.Caller, id, why string) error {
	for {
		live, err := s.liveOf(ctx, by.Tenant, id)
		if err != nil {
			return fmt.Errorf("list them: %w", err)
		}
		if len(live) == 0 {
			return nil
		}
		err = s.eachTask(ctx, by, live, func(tx *audit.Tx, seq uint64) error {
			var t task.Task
			if err := s.tasks.Load(tx, seq, &t); err != nil || t.Status.Terminal() {
				return err
			}
			return s.cancel(tx, &t, core.Cut(why, 1000))
		})
		if err != nil {
			return err
		}
	}
}

// liveOf lists the tasks of a session that are not over and not being
// cancelled yet, by their numbers.
func (s *damage) liveOf(ctx context.Context, tenant, session string) ([]uint64, error) {
	var out []uint64
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		all, err := s.tasks.Live(tx, "")
		if err != nil {
			return err
		}
		for _, seq := range all {
			if s.isQuarantined(tenant, seq) {
				continue
			}
			var t task.Task
			if err := s.tasks.Load(tx, seq, &t); err != nil {
				if err = s.unless(tenant, seq, err); errors.Is(err, errQuarantined) {
					continue
				}
				return err
			}
			if t.SessionID == session && !t.CancelRequested {
				out = append(out, seq)
			}
		}
		return nil
	})
	return out, err
}

// Rest has no task of a tenant started until again is called. Those that run go on.
func (s *shared) Rest(tenant string) (again func()) {
	s.resting.Store(tenant, true)
	return func() {
		s.resting.Delete(tenant)
		s.ring()
	}
}

func (s *shared) rests(tenant string) bool {
	_, rests := s.resting.Load(tenant)
	return rests
}
