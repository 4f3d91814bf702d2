package bus

import (
	"context"
	"errors"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Cutting history off.
const (
	pruneFrom  = 256             // messages that are too many; fewer are left for the next time
	pruneSlack = 5 * time.Minute // after its time to live a message stays so long: a reader may still have it in hand
)

// Prune cuts off the oldest messages past what is kept. What can still be
// delivered stays, and so does what came after it.
func (b *Bus) Prune(ctx context.Context, tenant string) error {
	limit := b.limit(tenant)
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		if limit.Excess(b.messages.Count(tx)) < pruneFrom {
			limit.Keep = 0
		}
		return nil
	})
	for next := []byte{}; err == nil && next != nil; {
		next, err = b.messages.Prune(ctx, core.Self(tenant, "bus"), limit, "messages")
	}
	return audit.Explain("cut old messages off", err)
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

// ended is when a message was accepted; one that may still be read has not ended.
func (b *Bus) ended(tx *audit.Tx, m *Message) (at time.Time, err error) {
	if !m.expired(tx.Now().Add(-pruneSlack)) || b.inHand(tx.Tenant(), m.Seq) {
		return at, nil
	}
	if held, err := isHeld(tx, m); held || err != nil {
		return at, err
	}
	return m.Timestamp, nil
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

// forget removes what became of a message that leaves.
func (b *Bus) forget(tx *audit.Tx, m *Message) error {
	if err := errors.Join(fates.Drop(tx, record.Seq(m.Seq)), setDead(tx, m.Seq, false)); err != nil || m.Topic == "" {
		return err
	}
	t, err := b.topics.Load(tx, m.Topic)
	if err != nil || t == nil || t.LastSeq != m.Seq {
		return err
	}
	return b.topics.Leave(tx, nil, t)
}

// Erasers erase the payloads of what the subject sent, and of messages about their
// tasks.
func (b *Bus) Erasers() []record.Eraser {
	return []record.Eraser{b.messages.Eraser("messages")}
}

func (b *Bus) eraseMessage(e *record.Erasure, m *Message) {
	whose, over := e.Whose(m.TaskID)
	theirs := whose != record.NotTheirs || m.SenderID == e.Of.Name || e.Of.Is(m.SentBy, m.SentPerson)
	e.Written = true // not as a new one, which followers hear of
	if !theirs || !e.Wipe(&m.Payload) {
		return
	}
	if e.Check(decorate(e.Tx, m)); !over || m.Status == Open || m.Unanswered || b.inHand(e.Tx.Tenant(), m.Seq) {
		e.Waits("message " + m.MessageID + " (it waits to be read or answered, or its task is not over)")
	}
	e.Then(func() error {
		data, err := encode(nil, m)
		t := b.of(e.Tx.Tenant())
		e.Tx.OnCommit(func() { t.feed.erased(m) })
		e.Tx.Changed("message", m.MessageID)
		return errors.Join(err, e.Tx.Put(messages, record.Seq(m.Seq), data))
	})
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
