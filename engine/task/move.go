package task

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Add gives a new task its number, and stores its input and the lists it is in
// for good. Its header is stored by the first Move.
func (b *Table) Add(tx *audit.Tx, t *Task) error {
	seq := uint64(tx.Add(countTasks, 1))
	t.TaskID = core.NewID(core.TaskPrefix, t.TenantID, seq)
	t.CreatedAt = tx.Now()
	if err := b.PutInput(tx, seq, t.Input); err != nil {
		return err
	}
	for _, ix := range t.indexes() {
		if err := tx.Put(ix.bucket, ix.key, nil); err != nil {
			return err
		}
		if ix.count != "" {
			tx.Add(ix.count, 1)
		}
	}
	return nil
}

// PutInput stores the input of a task.
func (b *Table) PutInput(tx *audit.Tx, seq uint64, input core.Raw) error {
	return tx.Put(bInput, keyIn(tx, seq), append(tx.Alloc(len(input)), input...))
}

// PutResult stores the result of a task that is to end in this transaction.
func (b *Table) PutResult(tx *audit.Tx, r *Result) error {
	return tx.Put(bResult, keyIn(tx, Seq(r.TaskID)), r.appendJSON(tx.Alloc(len(r.Output)+512)))
}

// Move writes a task's header after a change, with its audit event, its place
// in the live and status indexes and its counters. from is the status before,
// "" for a new task. With Note it is the only way a task changes.
func (b *Table) Move(tx *audit.Tx, t *Task, from Status, event string, detail core.Raw) error {
	raw, err := recordEvent(tx, t, event, detail)
	if err != nil {
		return err
	}
	seq := t.Seq()
	if from != t.Status {
		if err := reindex(tx, seq, from, t.Status); err != nil {
			return err
		}
	}
	// Before the hooks: who waits for the task finds the other record changed.
	if err := b.moved(tx, t, from); err != nil {
		return err
	}
	return b.write(tx, t, seq, raw)
}

// Note is Move for a change that its followers need not know of.
func (b *Table) Note(tx *audit.Tx, t *Task, event string) error {
	raw, err := recordEvent(tx, t, event, nil)
	if err != nil {
		return err
	}
	return b.write(tx, t, t.Seq(), raw)
}

// recordEvent audits a task as it will be stored, and returns that.
func recordEvent(tx *audit.Tx, t *Task, event string, detail core.Raw) (raw []byte, err error) {
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
func (b *Table) write(tx *audit.Tx, t *Task, seq uint64, raw []byte) error {
	c := *t
	c.Input = nil
	tx.Changed("task", c.TaskID)
	b.heads.forget(c.TenantID, seq)
	tx.OnCommit(func() {
		b.heads.put(&c, seq)
		b.committed(&c)
	})
	return tx.Put(bTask, keyIn(tx, seq), raw)
}

func reindex(tx *audit.Tx, seq uint64, from, to Status) error {
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

// SetWaiting marks whether a task's gate is open, and counts it. Move it then.
func (t *Task) SetWaiting(tx *audit.Tx, waiting bool) {
	switch {
	case waiting && t.Waiting == "":
		t.Waiting = "approval"
		tx.Add(countWaiting, 1)
	case !waiting && t.Waiting != "":
		t.Waiting = ""
		tx.Add(countWaiting, -1)
	}
}
