package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

// ErrNoReply means that nobody answered a request in time.
var ErrNoReply = errors.New("no response came in time")

// conversation checks what a message means for the open requests, and returns
// the one that it answers (model 3, rule Correlation Matching): a request opens
// a conversation, the first response, or error, of its recipient to its sender
// closes it.
func (b *Bus) conversation(tx *audit.Tx, d *draft) (*Message, error) {
	switch {
	case d.CorrelationID == "" || d.Type == Event || d.Topic != "" || d.Recipient == Broadcast:
		return nil, nil
	case d.resendOf != nil && d.Type != Request: // it closed its conversation already
		return nil, nil
	}
	a, open, err := asks.Get(tx, record.Key(d.CorrelationID))
	if err != nil {
		return nil, err
	}
	switch {
	case d.Type == Request && open:
		return nil, core.Errorf(core.Conflict, "correlation_id: %s is that of another open request", d.CorrelationID).With("field", "correlation_id")
	case d.Type == Request:
		return nil, nil
	case !open && d.Type == Error && !d.reply: // a notification about something that is over
		return nil, nil
	case !open:
		return nil, core.Errorf(core.Conflict, "correlation_id: no open request has %s; it was answered, has expired, or never was", d.CorrelationID).With("field", "correlation_id")
	}
	request, err := need(b.messages.Glance(tx, record.Seq(a.Seq)))
	if err != nil {
		return nil, err
	}
	switch {
	case request.expired(tx.Now()):
		return nil, core.Errorf(core.Conflict, "correlation_id: request %s has expired", request.MessageID).With("field", "correlation_id")
	case d.Sender != answerer(a.Recipient):
		return nil, core.Errorf(core.Conflict, "sender_id: request %s is for %s to answer, not %q", request.MessageID, answerer(a.Recipient), d.Sender).With("field", "sender_id")
	case d.Recipient != a.Sender:
		return nil, core.Errorf(core.Conflict, "recipient_id: request %s came from %s, not %q", request.MessageID, a.Sender, d.Recipient).With("field", "recipient_id")
	}
	return request, nil
}

// answerer is who sends the response to a request.
func answerer(recipient string) string {
	if recipient == Controller {
		return System
	}
	return recipient
}

// opens begins the conversation of a request.
func opens(tx *audit.Tx, m *Message) error {
	if m.CorrelationID == "" {
		m.CorrelationID = core.NewUUID(m.TenantID, m.Seq, nil)
	}
	tx.Derived().Add(countAsks, 1)
	if err := putDue(tx, m.ExpiresAt(), m.Seq, toAnswer, ""); err != nil {
		return err
	}
	return asks.Put(tx.Derived(), record.Key(m.CorrelationID), askOf(m))
}

// closes ends the conversation of a request.
func closes(tx *audit.Tx, request *Message, f fate) error {
	tx.Derived().Add(countAsks, -1)
	return errors.Join(
		asks.Delete(tx.Derived(), record.Key(request.CorrelationID)),
		dues.Delete(tx, dueKey(request.ExpiresAt(), request.Seq, toAnswer, "")),
		fates.Put(tx, ofConsumer(request.Seq, toAnswer, ""), f),
	)
}

// Request sends a request and waits for its response, or for the error that
// answers it, and takes that out of the sender's mailbox. timeout is 1 ms to
// 1 h; 0 means the request's time to live, which in turn is the timeout where
// it is not given. ErrNoReply is wrapped when nothing came: the request stays
// open then until its time to live ends.
func (b *Bus) Request(ctx context.Context, by core.Caller, s Send, timeout time.Duration) (Message, error) {
	s.Type = Request
	if timeout < 0 || timeout > MaxTTL*time.Second || timeout > 0 && timeout < time.Millisecond {
		return Message{}, core.Invalid("timeout", timeout, "1ms-1h")
	}
	if s.TTL == 0 && timeout > 0 {
		s.TTL = int((timeout + time.Second - 1) / time.Second)
	}
	// Who waits is known before the answer can come: no other reader of the
	// mailbox gets it.
	t, bell, correlation := b.of(by.Tenant), make(chan struct{}, 1), ""
	waits := func(m *Message) {
		correlation = m.CorrelationID
		b.mu.Lock()
		defer b.mu.Unlock()
		t.waiting[correlation] = append(t.waiting[correlation], bell)
	}
	defer func() { b.unwait(t, correlation, bell) }()
	sent, err := b.accept(ctx, by, &draft{Send: s, accepted: waits})
	if err != nil {
		return Message{}, err
	}
	if timeout == 0 {
		timeout = time.Duration(sent.TTL) * time.Second
	}
	return b.await(ctx, by, &sent, timeout, bell)
}

// await waits for the answer to a request; the bell rings when it is there.
func (b *Bus) await(ctx context.Context, by core.Caller, sent *Message, timeout time.Duration, bell <-chan struct{}) (Message, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		answer, open, err := b.answer(ctx, sent)
		switch {
		case err != nil:
			return Message{}, err
		case answer != nil:
			return *answer, b.takeAnswer(ctx, by, answer)
		case !open:
			return Message{}, fmt.Errorf("request %s to %s: %w", sent.MessageID, sent.RecipientID, ErrNoReply)
		}
		select {
		case <-bell:
		case <-timer.C:
			return Message{}, fmt.Errorf("request %s to %s, after %v: %w", sent.MessageID, sent.RecipientID, timeout, ErrNoReply)
		case <-ctx.Done():
			return Message{}, ctx.Err()
		}
	}
}

// answer is the answer to a request, nil when there is none, and whether one
// can still come.
func (b *Bus) answer(ctx context.Context, sent *Message) (answer *Message, open bool, err error) {
	err = b.ledger.View(ctx, sent.TenantID, func(tx *audit.Tx) error {
		f, closed, err := fates.Get(tx, ofConsumer(sent.Seq, toAnswer, ""))
		open = !closed
		if err == nil && f.Next != "" {
			answer, err = b.messages.Load(tx, f.Next)
		}
		return err
	})
	return answer, open, audit.Explain("look for the answer", err)
}

// takeAnswer takes an answer out of its mailbox. That it is there already
// counts, whatever ctx says by now.
func (b *Bus) takeAnswer(ctx context.Context, by core.Caller, m *Message) error {
	return b.change(context.WithoutCancel(ctx), by, "take an answer", func(tx *audit.Tx) error {
		return b.readIn(tx, m.RecipientID, []*Message{m})
	})
}

func (b *Bus) unwait(t *tenant, correlation string, bell chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := slices.DeleteFunc(t.waiting[correlation], func(other chan struct{}) bool { return other == bell })
	if t.waiting[correlation] = rest; len(rest) == 0 {
		delete(t.waiting, correlation)
	}
	t.feed.ring() // an answer that was kept for the one who waited is anyone's now
}

// answered wakes who waits for the end of a conversation.
func (b *Bus) answered(t *tenant, correlation string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bell := range t.waiting[correlation] {
		loop.Ring(bell)
	}
}

// Reply answers an open request in the name of its recipient. isError makes
// it an error message.
func (b *Bus) Reply(ctx context.Context, by core.Caller, requestID string, payload core.Raw, isError bool) (Message, error) {
	m, err := b.find(ctx, by, requestID)
	if err != nil {
		return Message{}, err
	}
	if m.MessageType != Request {
		return Message{}, core.Errorf(core.InvalidInput, "message_id: %s is of type %s; only a request is answered", m.MessageID, m.MessageType).With("field", "message_id")
	}
	s := Send{
		Recipient: m.SenderID, Sender: answerer(m.RecipientID), Type: Response, Payload: payload, Priority: m.Priority,
		CorrelationID: m.CorrelationID, Trace: m.TraceID, Task: m.TaskID,
	}
	if isError {
		s.Type = Error
	}
	return b.accept(ctx, by, &draft{Send: s, reply: true})
}

// find returns a message with what became of it. One of another tenant is
// refused and the attempt audited.
func (b *Bus) find(ctx context.Context, by core.Caller, id string) (*Message, error) {
	seq, err := core.LocalUUID("message_id", by.Tenant, id)
	if err != nil {
		return nil, b.foreign(ctx, by, id, err)
	}
	var m *Message
	err = b.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		if m, err = b.messages.Load(tx, id); err != nil || m == nil {
			return err
		}
		return decorate(tx, m)
	})
	if err == nil && m == nil {
		m, err = b.event(ctx, by.Tenant, seq, id)
	}
	return m, audit.Explain("read message "+id, err)
}
