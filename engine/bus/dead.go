package bus

import (
	"cmp"
	"context"
	"errors"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// A dead letter is a message that did not get to one of those it was meant for: it
// expired unread, was refused, or is a request that nobody answered. It is one until
// it is sent again.

// burial says what became of messages that share one reason and one consumer, with one
// event for all.
type burial struct {
	kind   byte
	name   string
	reason string
	ids    []string
}

// add notes it of a message, unless something became of it there before.
func (g *burial) add(tx *audit.Tx, m *Message) error {
	if g.kind == toSubscription { // of the others it is noted with what else they do
		at := ofConsumer(m.Seq, toSubscription, g.name)
		_, known, err := fates.Get(tx, at)
		if err == nil && !known {
			err = fates.Put(tx, at, fate{Status: Status(g.reason), At: tx.Now()})
		}
		if err != nil || known {
			return err
		}
	}
	_, again, err := fates.Get(tx, ofConsumer(m.Seq, toRepeat, ""))
	if err == nil && !again {
		err = setDead(tx, m.Seq, true)
	}
	tx.Changed("message", m.MessageID)
	g.ids = append(g.ids, m.MessageID)
	return err
}

// setDead has a message be a dead letter, or one no more.
func setDead(tx *audit.Tx, seq uint64, dead bool) error {
	_, was, err := deads.Get(tx, record.Seq(seq))
	switch {
	case err != nil || was == dead:
		return err
	case dead:
		tx.Derived().Add(countDead, 1)
		return deads.Put(tx.Derived(), record.Seq(seq), struct{}{})
	}
	tx.Derived().Add(countDead, -1)
	return deads.Delete(tx.Derived(), record.Seq(seq))
}

// bury adds messages and audits them.
func (g *burial) bury(tx *audit.Tx, messages ...*Message) error {
	for _, m := range messages {
		if err := g.add(tx, m); err != nil {
			return err
		}
	}
	return g.record(tx)
}

// record audits what was added.
func (g *burial) record(tx *audit.Tx) error {
	if len(g.ids) == 0 {
		return nil
	}
	subject := map[byte]string{toMailbox: "mailbox", toSubscription: "subscription", toAnswer: "message"}[g.kind]
	detail := map[string]any{"reason": g.reason, "messages": g.ids}
	_, err := tx.Record(audit.Entry{Type: "message.dead", Subject: subject, ID: cmp.Or(g.name, g.ids[0]), Detail: detail})
	return err
}

// lose notes what expired before a durable subscription came to it.
func (b *Bus) lose(ctx context.Context, tenant, name string, messages []*Message) error {
	if len(messages) == 0 {
		return nil
	}
	// Append: where a sweep was faster nothing is left to tell of.
	return audit.Explain("record what expired", b.ledger.Append(ctx, core.Self(tenant, "bus"), func(tx *audit.Tx) error {
		g := burial{kind: toSubscription, name: name, reason: string(Expired)}
		return g.bury(tx, messages...)
	}))
}

// Resend accepts a message again, as a new one of the same content: to all
// the subscribers of its topic, or to its recipient. A request begins a new
// conversation. The old message says so, and is no dead letter any more.
func (b *Bus) Resend(ctx context.Context, by core.Caller, id string) (Message, error) {
	m, err := b.find(ctx, by, id)
	if err != nil {
		return Message{}, err
	}
	if m.Status == Open {
		return Message{}, core.Errorf(core.Conflict, "message_id: %s is still unread", id).With("field", "message_id")
	}
	if core.IsErased(m.Payload) {
		return Message{}, core.Errorf(core.Conflict, "message_id: the payload of %s was erased", id).With("field", "message_id")
	}
	s := Send{
		Topic: m.Topic, Recipient: m.RecipientID, Sender: m.SenderID, Type: m.MessageType, Payload: m.Payload,
		TTL: m.TTL, Priority: m.Priority, CorrelationID: m.CorrelationID, Trace: m.TraceID, Task: m.TaskID,
	}
	if m.MessageType == Request {
		s.CorrelationID = ""
	}
	return b.accept(ctx, by, &draft{Send: s, resendOf: m})
}

// markResent notes of a message by which it was repeated.
func markResent(tx *audit.Tx, old, repeat *Message) error {
	again := fate{At: tx.Now(), Next: repeat.MessageID}
	return errors.Join(fates.Put(tx, ofConsumer(old.Seq, toRepeat, ""), again), setDead(tx, old.Seq, false))
}
