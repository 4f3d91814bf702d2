package swarm

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/task"
)

// taskChanged runs after the commit that wrote a task's header: its work looks
// again, and what kept it from being claimed is over.
func (s *Swarm) taskChanged(t *task.Task) {
	s.mu.Lock()
	if l := s.leases[refOf(t)]; l != nil {
		l.paused, l.cancel = t.Paused, t.CancelRequested
		l.poke()
	}
	s.mu.Unlock()
	s.mended(t)
}

// enqueue makes a queued task claimable unless something still holds it.
func (s *Swarm) enqueue(tx *audit.Tx, t *task.Task) error {
	if t.Status != task.Queued || t.Waiting != "" || t.Pending > 0 {
		return nil
	}
	l := lane{t.SessionID, t.Agent}
	tx.OnCommit(func() { s.laneFilled(t.TenantID, l) })
	return tx.Put(bReady, l.key(tx, t.Priority, t.Seq()), nil)
}

// dequeue takes a queued task out of every place it may wait in.
func (s *Swarm) dequeue(tx *audit.Tx, t *task.Task) error {
	seq := t.Seq()
	if err := tx.Delete(bReady, lane{t.SessionID, t.Agent}.key(tx, t.Priority, seq)); err != nil {
		return err
	}
	if !t.RunAt.IsZero() {
		if err := tx.Delete(bDue, dueKey(t.RunAt, seq)); err != nil {
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
