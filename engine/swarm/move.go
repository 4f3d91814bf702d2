package swarm

import (
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/queue"
	"swarmdeck/engine/task"
)

// taskChanged runs after the commit that wrote a task's header: its work looks
// again, and what kept it from being claimed is over.
func (s *leasing) taskChanged(t *task.Task) {
	s.mu.Lock()
	if l := s.leases[refOf(t)]; l != nil {
		l.paused, l.cancel = t.Paused, t.CancelRequested
		l.poke()
	}
	s.mu.Unlock()
	s.mended(t)
}

// laneOf is where a task waits to be claimed.
func laneOf(t *task.Task) queue.Lane { return queue.Lane{Session: t.SessionID, Agent: t.Agent} }

// enqueue makes a queued task claimable unless something still holds it.
func (s *shared) enqueue(tx *audit.Tx, t *task.Task) error {
	if t.Status != task.Queued || t.Waiting != "" || t.Pending > 0 {
		return nil
	}
	return s.queue.Put(tx, laneOf(t), t.Priority, t.Seq())
}

// dequeue takes a queued task out of every place it may wait in.
func (s *shared) dequeue(tx *audit.Tx, t *task.Task) error {
	seq := t.Seq()
	if err := s.queue.Drop(tx, laneOf(t), t.Priority, seq); err != nil {
		return err
	}
	if !t.RunAt.IsZero() {
		if err := queue.Gate.Drop(tx, queue.Entry{At: t.RunAt, Seq: seq}); err != nil {
			return err
		}
	}
	if err := s.started(tx, t); err != nil {
		return err
	}
	for _, dep := range t.After {
		if err := s.tasks.DropAfter(tx, task.Seq(dep), seq); err != nil {
			return err
		}
	}
	return nil
}

// regate sends a queued task back to the judge at a time.
func (s *shared) regate(tx *audit.Tx, t *task.Task, at time.Time, event string, detail core.Raw) error {
	t.ApprovalID, t.RunAt = "", at
	if err := s.tasks.Move(tx, t, task.Queued, event, detail); err != nil {
		return err
	}
	return s.schedule(tx, t)
}

func (s *shared) schedule(tx *audit.Tx, t *task.Task) error {
	return s.queue.At(tx, queue.Gate, queue.Entry{At: t.RunAt, Seq: t.Seq()})
}
