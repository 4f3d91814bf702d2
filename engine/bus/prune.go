package bus

import (
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
	tx.Changed("message", "", nil)
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
