package swarm

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// move writes a task's header after a change, with its audit event, its place
// in the live and status indexes and its counters. from is the status before,
// "" for a new task. With note it is the only way a task changes.
func (s *Swarm) move(tx *audit.Tx, t *Task, from Status, event string, detail core.Raw) error {
	raw, err := recordTask(tx, t, event, detail)
	if err != nil {
		return err
	}
	seq := taskSeq(t.TaskID)
	if from != t.Status {
		if err := s.reindex(tx, seq, from, t.Status); err != nil {
			return err
		}
	}
	// Before the hooks: who waits for the task finds the other record changed.
	if err := s.follow(tx, t, from); err != nil {
		return err
	}
	return s.write(tx, t, seq, raw)
}

// note is move for a change that its followers need not know of.
func (s *Swarm) note(tx *audit.Tx, t *Task, event string) error {
	raw, err := recordTask(tx, t, event, nil)
	if err != nil {
		return err
	}
	return s.write(tx, t, taskSeq(t.TaskID), raw)
}

// recordTask audits a task as it will be stored, and returns that.
func recordTask(tx *audit.Tx, t *Task, event string, detail core.Raw) (raw []byte, err error) {
	prev, input := t.AuditSeq, t.Input
	t.UpdatedAt, t.AuditSeq, t.Input = tx.Now(), tx.Next(), nil
	raw = t.appendJSON(tx.Alloc(768))
	t.Input = input
	_, err = tx.Record(audit.Entry{
		Type: event, Trace: t.TraceID, Subject: "task", ID: t.TaskID,
		RawState: t.appendState(tx.Alloc(maxState)), RawDetail: detail, Prev: prev,
	})
	return raw, err
}

// write stores a task's header.
func (s *Swarm) write(tx *audit.Tx, t *Task, seq uint64, raw []byte) error {
	c := *t
	c.Input = nil
	tx.Changed("task", c.TaskID, &c)
	sum := s.heads.sum(raw)
	tx.OnCommit(func() {
		s.heads.put(&c, seq, sum)
		s.mended(c.TenantID, seq)
		s.taskChanged(&c)
	})
	return tx.Put(bTask, keyIn(tx, seq), raw)
}

func (s *Swarm) reindex(tx *audit.Tx, seq uint64, from, to Status) error {
	if from != "" {
		tx.Add(countStatus(from), -1)
		if !from.Terminal() {
			if err := tx.Delete(bLive, liveKey(tx, from, seq)); err != nil {
				return err
			}
		}
	}
	tx.Add(countStatus(to), 1)
	switch {
	case !to.Terminal():
		return tx.Put(bLive, liveKey(tx, to, seq), nil)
	case rare(to):
		return tx.Put(bRare, rareKey(tx, to, seq), nil)
	}
	return nil
}

// taskChanged runs after the commit: whoever waits for the task looks again.
func (s *Swarm) taskChanged(t *Task) {
	s.mu.Lock()
	r := t.ref()
	waiting := s.waiters[r]
	delete(s.waiters, r)
	if l := s.leases[r]; l != nil {
		l.paused, l.cancel = t.Paused, t.CancelRequested
		l.poke()
	}
	s.mu.Unlock()
	for _, ch := range waiting {
		close(ch)
	}
}

// setWaiting marks whether a task's gate is open, and counts it.
func setWaiting(tx *audit.Tx, t *Task, waiting bool) {
	switch {
	case waiting && t.Waiting == "":
		t.Waiting = "approval"
		tx.Add(countWaiting, 1)
	case !waiting && t.Waiting != "":
		t.Waiting = ""
		tx.Add(countWaiting, -1)
	}
}

// enqueue makes a queued task claimable unless something still holds it.
func (s *Swarm) enqueue(tx *audit.Tx, t *Task) error {
	if t.Status != Queued || t.Waiting != "" || t.Pending > 0 {
		return nil
	}
	l := lane{t.SessionID, t.Agent}
	tx.OnCommit(func() { s.laneFilled(t.TenantID, l) })
	return tx.Put(bReady, l.key(tx, t.Priority, taskSeq(t.TaskID)), nil)
}

// dequeue takes a queued task out of every place it may wait in.
func (s *Swarm) dequeue(tx *audit.Tx, t *Task) error {
	seq := taskSeq(t.TaskID)
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
		if err := tx.Delete(bAfter, pairKey(taskSeq(dep), seq)); err != nil {
			return err
		}
	}
	return nil
}
