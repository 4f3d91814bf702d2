package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Accept takes a message: when it returns nil, the message is on disk and will
// be delivered. An agent can only send in its own name.
func (b *Bus) Accept(ctx context.Context, by core.Caller, s Send) (Message, error) {
	return b.accept(ctx, by, &draft{Send: s})
}

func (b *Bus) accept(ctx context.Context, by core.Caller, d *draft) (made Message, err error) {
	if err := d.check(); err != nil {
		return made, err
	}
	err = b.change(ctx, by, "accept a message", func(tx *audit.Tx) error {
		m, err := b.acceptIn(tx, d)
		if err == nil {
			made = m.asAccepted()
		}
		return err
	})
	return made, b.foreign(ctx, by, d.Sender+" to "+d.Recipient, err)
}

// AcceptIn is Accept inside a transaction that changes something else: the
// message exists if and only if the change does. A refusal has written nothing.
func (b *Bus) AcceptIn(tx *audit.Tx, s Send) (Message, error) {
	d := &draft{Send: s}
	if err := d.check(); err != nil {
		return Message{}, err
	}
	m, err := b.acceptIn(tx, d)
	if err != nil {
		return Message{}, err
	}
	return m.asAccepted(), nil
}

// asAccepted is a message with the status that it begins with.
func (m *Message) asAccepted() Message {
	made := *m
	made.Status, made.Unanswered = Open, m.MessageType == Request
	if m.Topic != "" || m.RecipientID == Broadcast && len(m.Recipients) == 0 {
		made.Status = Published
	}
	return made
}

func (b *Bus) acceptIn(tx *audit.Tx, d *draft) (*Message, error) {
	if err := b.sender(tx, d); err != nil {
		return nil, err
	}
	tenant := tx.Tenant()
	if err := b.parties(tenant, d); err != nil {
		return nil, err
	}
	request, err := b.conversation(tx, d)
	if err != nil {
		return nil, err
	}
	to, full, err := b.boxes(tx, d)
	if err != nil {
		return nil, err
	}
	// From here on nothing is refused: the transaction may go on after that.
	seq := b.messages.Next(tx)
	m := &Message{
		MessageID: core.NewUUID(tenant, seq, nil), Topic: d.Topic, TenantID: tenant, Seq: seq,
		SenderID: d.Sender, RecipientID: d.Recipient, MessageType: d.Type, Timestamp: tx.Now(), TTL: d.TTL,
		Priority: d.Priority, CorrelationID: d.CorrelationID, TraceID: d.Trace, TaskID: d.Task, Payload: d.Payload,
	}
	if tx.By.Kind == core.Operator {
		m.SentBy, m.SentPerson = tx.By.Name, tx.By.Person
	}
	if m.TraceID == "" {
		m.TraceID = core.NewTrace(nil)
	}
	if d.resendOf != nil {
		m.ResendOf = d.resendOf.MessageID
		if err := markResent(tx, d.resendOf, m); err != nil {
			return nil, err
		}
	}
	switch {
	case m.MessageType == Request:
		err = opens(tx, m)
	case request != nil:
		err = closes(tx, request, fate{At: tx.Now(), Next: m.MessageID})
	}
	if err != nil {
		return nil, err
	}
	if m.RecipientID == Broadcast {
		m.Recipients = slices.Concat(to, full)
	}
	event := record.Event{Type: "message.accepted", Trace: m.TraceID, Detail: accepted{
		m.Topic, m.SenderID, m.RecipientID, m.MessageType, m.Priority, m.CorrelationID, m.TaskID, m.ResendOf, d.digest,
	}}
	if err := b.messages.Save(tx, event, nil, m); err != nil {
		return nil, err
	}
	if m.Topic != "" {
		err = b.routeTopic(tx, m)
	} else {
		err = b.deliver(tx, m, to, full)
	}
	if err == nil && b.opt.Record != nil {
		err = b.opt.Record.Sent(tx, m)
	}
	if err != nil {
		return nil, err
	}
	if d.accepted != nil {
		d.accepted(m)
	}
	return m, nil
}

// accepted is what the audit log says of a message: all but its payload, and
// the payload's digest.
type accepted struct {
	Topic       string `json:"topic,omitempty"`
	Sender      string `json:"sender_id"`
	Recipient   string `json:"recipient_id,omitempty"`
	Type        Type   `json:"message_type"`
	Priority    int    `json:"priority"`
	Correlation string `json:"correlation_id,omitempty"`
	Task        string `json:"task_id,omitempty"`
	ResendOf    string `json:"resend_of,omitempty"`
	Digest      string `json:"payload_digest"`
}

// sender fills the sender in. Nobody but the engine and its operators speaks
// for others.
func (b *Bus) sender(tx *audit.Tx, d *draft) error {
	if tx.By.Kind == core.Agent {
		if d.Sender == "" {
			d.Sender = tx.By.Name
		}
		if d.Sender != tx.By.Name {
			return core.Errorf(core.Denied, "sender_id: %s can't send as %q", tx.By.Name, d.Sender).With("field", "sender_id")
		}
	}
	if d.Sender == "" {
		d.Sender = System
	}
	return nil
}

// routeTopic puts a new message where its subscribers find it.
func (b *Bus) routeTopic(tx *audit.Tx, m *Message) error {
	known, err := b.topics.Load(tx, m.Topic)
	if err != nil {
		return err
	}
	t := Topic{Topic: m.Topic}
	if known != nil {
		t = *known
	}
	t.Messages++
	t.LastSeq, t.LastAt = m.Seq, m.Timestamp
	if err := b.topics.Write(tx, known, &t); err != nil {
		return err
	}
	all, err := b.durables(tx)
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.wants(m.Topic, m.MessageType) {
			return putDue(tx, m.ExpiresAt(), m.Seq, toSubscription, "")
		}
	}
	return nil
}

func putDue(tx store.Tx, due time.Time, seq uint64, kind byte, name string) error {
	if err := dues.Put(tx, dueKey(due, seq, kind, name), struct{}{}); err != nil {
		return fmt.Errorf("write when message %d is due: %w", seq, err)
	}
	return nil
}

// accepted runs after the commit, on the store's writer; nil left.
func (b *Bus) accepted(tenant, _ string, m *Message) {
	if m == nil {
		return
	}
	t := b.of(tenant)
	t.feed.message(m)
	b.loop.Due(t.name, m.ExpiresAt())
	if m.CorrelationID != "" {
		b.answered(t, m.CorrelationID)
	}
}
