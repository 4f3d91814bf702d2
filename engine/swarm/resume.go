package swarm

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
)

// defaultDeaths bounds how often work that kills its engine is resumed.
const defaultDeaths = 20

// NoteProgress says, in the transaction that puts more of a task's work on disk, that
// it gets on: engines that died under it before are forgotten.
func (s *shared) NoteProgress(tx *audit.Tx, taskID string) error {
	var t task.Task
	seq := task.Seq(taskID)
	if err := s.tasks.Load(tx, seq, &t); err != nil || t.Deaths == 0 || t.Status != task.Running {
		return err
	}
	t.Deaths = 0
	return s.tasks.Note(tx, &t, "task.progressed")
}

// NoteSent says, before its agent is told, that a task is the agent's. An engine that
// dies from then on leaves nobody who knows what came of it, unless its work goes on
// where it was: a person is asked before it is sent again.
func (s *shared) NoteSent(tx *audit.Tx, taskID string) error {
	var t task.Task
	if err := s.tasks.Load(tx, task.Seq(taskID), &t); err != nil || t.Resumes || t.Sent || t.Status != task.Running {
		return err
	}
	t.Sent = true
	return s.tasks.Note(tx, &t, "task.sent")
}

// NoteBegun says, in a transaction before the first effect of a task that is approved or
// let pass, that half of its effect may be there from now on, or that none of it is. An
// engine that dies under it leaves it to the next one, which has its runner bring it to
// its end before anything else: nobody is asked about half an effect.
func (s *shared) NoteBegun(tx *audit.Tx, taskID string, begun bool) error {
	var t task.Task
	err := s.tasks.Load(tx, task.Seq(taskID), &t)
	if errors.Is(err, core.Kind(core.NotFound)) && !begun {
		return nil
	}
	if err != nil || t.Begun == begun {
		return err
	}
	if begun && (t.Status != task.Running || t.CancelRequested) {
		return core.Errorf(core.Conflict, "task %s does not run any more: nothing is begun", taskID)
	}
	t.Begun = begun
	event := "task.begun"
	if !begun {
		event = "task.taken_back"
	}
	return s.tasks.Note(tx, &t, event)
}

// resume has a task that has begun its effect go on under a new lease.
func (s *ending) resume(tx *audit.Tx, t *task.Task, why string) (err error) {
	if err := s.opt.Record.Concluded(tx, t, task.Result{Status: task.Queued, Error: &task.Error{Code: CodeInterrupted, Message: why, Retryable: true}}); err != nil {
		return err
	}
	if err := s.leave(tx, t); err != nil {
		return err
	}
	if t.Input, err = s.tasks.Input(tx, t.Seq()); err != nil {
		return fmt.Errorf("read input of task %s: %w", t.TaskID, err)
	}
	t.Worker, t.Lease = localWorker, uint64(tx.Add(countLease, 1))
	l, again := newLease(t), *t
	tx.OnCommit(func() {
		s.leased(l)
		s.mu.Lock()
		s.resumed = append(s.resumed, again)
		s.mu.Unlock()
		s.ring()
	})
	return s.tasks.Move(tx, t, task.Running, "task.continued", core.MustEncode(map[string]any{"reason": why, "lease": t.Lease}))
}

// goOn starts what has begun its effect under an engine that died, or stood still.
func (s *ending) goOn(start func(task.Task)) {
	s.mu.Lock()
	all := s.resumed
	s.resumed = nil
	for _, t := range all {
		if l := s.leases[refOf(&t)]; l != nil {
			s.beat(l)
		}
	}
	s.mu.Unlock()
	for _, t := range all {
		start(t)
	}
}

// ReasonSent is the reason code of the question whether a task is sent again.
const ReasonSent = "agent.interrupted"

// unsure has a person decide whether a task is sent again that an engine, or its agent,
// died under.
func unsure(t *task.Task, v *judge.Verdict) {
	if !t.Sent {
		return
	}
	what, who := "The engine ended", "a command"
	if t.ErrorCode != "" {
		what = "The attempt failed (" + t.ErrorCode + ")"
	}
	if t.Agent != "" {
		who = "agent " + t.Agent
	}
	v.Doubt(ReasonSent, what+" while "+who+
		" worked on this, and what it has done of it is not known. Approve to send it once more, deny to end the task.")
}

// orphaned takes back a task whose engine died, or stood still, which costs no attempt. What
// an agent may have done already is asked about, and so is what has no attempt left.
func (s *ending) orphaned(tx *audit.Tx, t *task.Task, why string) error {
	if t.Begun {
		return s.resume(tx, t, why)
	}
	t.ErrorCode = ""
	if t.Sent = t.Sent || !t.Resumes && t.LastTry(); t.Sent {
		return s.interrupt(tx, t, why, 0)
	}
	if t.Waiting == "" {
		t.Deaths++
	}
	if t.Deaths > s.opt.Deaths {
		t.Deaths = 0
		return s.loseTask(tx, t, why)
	}
	return s.interrupt(tx, t, why, resumeBackoff(t.Deaths))
}

// resumeBackoff is how long work is let rest after engines died under it: nothing at
// first, then so long that a person gets in to end what kills them.
func resumeBackoff(deaths int) time.Duration {
	const free, most = 3, 6 // deaths; most is of doublings
	if deaths <= free {
		return 0
	}
	return time.Second << min(deaths-free-1, most)
}

// CodeInterrupted is the code of an attempt that the end of its engine cut off.
const CodeInterrupted = "interrupted"

// interrupt returns a task to the queue, with the attempt that it has: what
// interrupted it was not its fault. An answer that was given stands for what has not begun.
func (s *ending) interrupt(tx *audit.Tx, t *task.Task, why string, wait time.Duration) error {
	if err := s.voidGates(tx, t, why); err != nil {
		return err
	}
	if t.Status == task.Running && !t.CancelRequested { // a cancelled one ends below
		cut := task.Error{Code: CodeInterrupted, Message: why, Retryable: true}
		if err := s.opt.Record.Concluded(tx, t, task.Result{Status: task.Queued, Error: &cut}); err != nil {
			return err
		}
	}
	if err := s.leave(tx, t); err != nil {
		return err
	}
	if t.CancelRequested {
		return s.end(tx, t, task.Result{Status: task.Cancelled, Error: &task.Error{Code: "cancelled", Message: why}})
	}
	t.SetWaiting(tx, false)
	if stands, err := s.judge.StandsStill(tx, t.ApprovalID, t.Resumes); err != nil {
		return err
	} else if !stands || t.Sent {
		t.ApprovalID = ""
	}
	t.Status, t.Worker, t.Lease = task.Queued, "", 0
	t.RunAt = tx.Now().Add(wait).Truncate(time.Microsecond)
	if err := s.tasks.Move(tx, t, task.Running, "task.interrupted", core.MustEncode(map[string]string{"reason": why})); err != nil {
		return err
	}
	return s.schedule(tx, t)
}

// rebuild reads what the scheduler keeps in mind. Its cost is the live work, not
// the history. What can't be read holds what it might have held: the tasks of a
// session stay queued, a budget counts as used up, an emergency stop as pressed.
func (s *Swarm) rebuild(ctx context.Context, tenant string) error {
	return errors.Join(
		s.Sessions.Read(ctx, tenant), s.Budgets.Read(ctx, tenant), s.EStops.Read(ctx, tenant), s.slotted.Read(ctx, tenant), s.rebuildWork(ctx, tenant),
	)
}

// rebuildWork is rebuild for the queue.
func (s *Swarm) rebuildWork(ctx context.Context, tenant string) error {
	var over []uint64
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		s.mu.Lock()
		s.granted[tenant] = uint64(tx.Counter(countLease)) // no work of ours runs under an older one
		s.mu.Unlock()
		if err := s.queue.Read(tx); err != nil {
			return err
		}
		over, err = s.tasks.Released(tx)
		return err
	})
	for _, dep := range over {
		s.releaseLater(tenant, dep, 0)
	}
	return err
}

// Recover takes the leases of the engine that died away: its tasks are queued
// again, or fail. It is called once, when all runners are there: those that follow
// their tasks miss none of it.
func (s *Swarm) Recover(ctx context.Context) error {
	return s.opt.Health.Tenants(ctx, component, s.tenants(), func(tenant string) error { return s.recover(ctx, tenant) })
}

// recover is Recover for one tenant. A task whose work had ended waits for a person
// and no worker: it goes on waiting.
func (s *Swarm) recover(ctx context.Context, tenant string) error {
	var lost []uint64
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		lost, err = s.tasks.Live(tx, task.Running)
		return err
	})
	if err != nil {
		return err
	}
	return s.eachTask(ctx, core.Self(tenant, "recovery"), lost, func(tx *audit.Tx, seq uint64) error {
		var t task.Task
		if err := s.tasks.Load(tx, seq, &t); err != nil {
			return err
		}
		if t.Status != task.Running {
			return task.Damaged(tenant, seq, fmt.Errorf("it is %s, and kept among the running", t.Status))
		}
		if _, there, err := parked.Get(tx, record.Seq(seq)); err != nil || there {
			return err
		}
		return s.orphaned(tx, &t, "the engine ended while it ran")
	})
}
