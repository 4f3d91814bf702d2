package bus

import (
	"bytes"
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// EraseMessages is a record.Erase: the payloads of what the subject sent, and
// of messages about their tasks. What waits to be read is left.
func (b *Bus) EraseMessages(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	return b.messages.Sweep(of, "messages", func(tx *audit.Tx, e *record.Erasure, k, value []byte, m *Message) (bool, error) {
		whose, over, err := of.Task(tx, m.TaskID)
		if err != nil {
			return false, err
		}
		if whose == record.NotTheirs && m.SenderID != of.Name && !of.Is(m.SentBy, m.SentPerson) {
			return false, nil
		}
		if len(m.Payload) <= len(`{}`) || core.IsErased(m.Payload) {
			return false, nil
		}
		if err := decorate(tx, m); err != nil {
			return false, err
		}
		if !over || m.Status == Open || m.Unanswered || b.inHand(tx.Tenant(), m.Seq) {
			of.Leave("message " + m.MessageID + " (it waits to be read or answered, or its task is not over)")
			return false, nil
		}
		if e == nil {
			return true, nil
		}
		e.Add(m.MessageID, value)
		m.Payload = core.Erase(m.Payload)
		data, err := encode(m)
		if err != nil {
			return true, err
		}
		t := b.of(tx.Tenant())
		tx.OnCommit(func() { t.feed.erased(m) })
		tx.Changed("message", m.MessageID, m)
		return true, tx.Put(b.messages.Bucket, bytes.Clone(k), data) // not as a new one, which followers hear of
	}).Slice(ctx, by, of, from)
}

// erased takes a message without its payload in the place of what it was.
func (f *feed) erased(m *Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := m.Seq - f.first; len(f.tail) > 0 && m.Seq >= f.first && i < uint64(len(f.tail)) {
		f.bytes += len(m.Payload) - len(f.tail[i].Payload)
		f.tail[i] = m
	}
}

// EraseRefusals is a record.Erase: why messages of the subject were refused, and
// why they refused those of others.
func (b *Bus) EraseRefusals(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	return b.dead.Erase(ctx, by, of, from, "refusals", func(tx *audit.Tx, e *record.Erasure, d *DeadLetter) (bool, error) {
		erased := core.EraseText(d.Detail)
		if erased == d.Detail {
			return false, nil
		}
		if d.SenderID != of.Name && d.RecipientID != of.Name {
			whose, _, err := of.Task(tx, d.TaskID)
			if err != nil || whose == record.NotTheirs {
				return false, err
			}
		}
		d.Detail = erased
		_, name := d.consumer()
		if e == nil || name == "" {
			return true, nil
		}
		at := record.Seq(d.Seq).Last(name)
		was, known, err := fates.Get(tx, at)
		if err != nil || !known || was.Reason == "" {
			return true, err
		}
		was.Reason = core.EraseText(was.Reason)
		return true, fates.Put(tx, at, was)
	})
}
