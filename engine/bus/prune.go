package bus

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Cutting history off.
const (
	pruneSlice = 256             // messages in one transaction
	pruneSlack = 5 * time.Minute // after its time to live a message stays so long: a reader may still have it in hand
)

// Prune cuts off the oldest messages past what is kept. What can still be
// delivered stays, and so does what came after it.
func (b *Bus) Prune(ctx context.Context, tenant string) error {
	for {
		over := false
		err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			limit := b.limit(tenant)
			if n := limit.Excess(b.messages.Count(tx)); n < pruneSlice {
				limit.Keep = 0 // few are left for the next time
			}
			m, err := b.messages.Leaving(tx, limit, (*Message).acceptedAt)
			over = m != nil
			return err
		})
		if err != nil || !over {
			return err
		}
		cut := 0
		err = b.change(ctx, core.Self(tenant, "bus"), "cut old messages off", func(tx *audit.Tx) error {
			cut, err = b.pruneIn(tx)
			return err
		})
		if err != nil || cut < pruneSlice {
			return err
		}
	}
}

// limit says which messages of a tenant may leave.
func (b *Bus) limit(tenant string) record.Limit {
	if b.opt.Limit != nil {
		if l := b.opt.Limit(tenant); l != (record.Limit{}) {
			return l
		}
	}
	return record.Limit{Keep: int64(b.opt.Keep)}
}

func (m *Message) acceptedAt() time.Time { return m.Timestamp }

func (b *Bus) pruneIn(tx *audit.Tx) (n int, err error) {
	var first, last uint64
	for ; n < pruneSlice; n++ {
		m, err := b.messages.Leaving(tx, b.limit(tx.Tenant()), (*Message).acceptedAt)
		if err != nil {
			return 0, err
		}
		if m == nil || !m.expired(tx.Now().Add(-pruneSlack)) || b.inHand(tx.Tenant(), m.Seq) {
			break
		}
		held, err := isHeld(tx, m)
		if err != nil {
			return 0, err
		}
		if held {
			break
		}
		if err := b.forget(tx, m); err != nil {
			return 0, err
		}
		first, last = cmp.Or(first, m.Seq), m.Seq
	}
	if n == 0 {
		return 0, nil
	}
	tx.Changed("message", "")
	_, err = tx.Record(audit.Entry{
		Type: "message.pruned", Subject: "messages", ID: tx.Tenant(), Detail: map[string]uint64{"from_seq": first, "to_seq": last},
	})
	return n, err
}

// isHeld reports whether a message expired in the hand of a reader and was not
// looked at since, or has expired and was not looked at yet.
func isHeld(tx *audit.Tx, m *Message) (held bool, err error) {
	for _, name := range m.to() {
		_, unread, err := boxes.Get(tx, inBox(name, m.Priority, m.Seq))
		if err != nil || unread {
			return unread, err
		}
	}
	if m.MessageType == Request {
		if a, open, err := asks.Get(tx, record.Key(m.CorrelationID)); err != nil || open && a.Seq == m.Seq {
			return true, err
		}
	}
	err = inHands.Each(tx, record.Seq(m.Seq), func(record.Parts, uint64) (bool, error) {
		held = true
		return false, nil
	})
	return held, err
}

// inHand reports whether a reader has a message that it did not acknowledge.
func (b *Bus) inHand(tenant string, seq uint64) bool {
	for _, s := range b.open(tenant) {
		if _, has := s.holds(seq); has && !s.pattern.system() {
			return true
		}
	}
	return false
}

// forget removes a message with all that became of it.
func (b *Bus) forget(tx *audit.Tx, m *Message) error {
	if err := errors.Join(b.messages.Leave(tx, nil, m), fates.Drop(tx, record.Seq(m.Seq)), b.removeLetters(tx, m.Seq)); err != nil || m.Topic == "" {
		return err
	}
	t, err := b.topics.Load(tx, m.Topic)
	if err != nil || t == nil || t.LastSeq != m.Seq {
		return err
	}
	return b.topics.Leave(tx, nil, t)
}

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
		data, err := encode(nil, m)
		if err != nil {
			return true, err
		}
		t := b.of(tx.Tenant())
		tx.OnCommit(func() { t.feed.erased(m) })
		tx.Changed("message", m.MessageID)
		return true, tx.Put(messages, bytes.Clone(k), data) // not as a new one, which followers hear of
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
