package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Read takes up to n (1-100) messages out of a mailbox, the highest priority
// and then the oldest first, and acknowledges them: they won't come again. It
// does not wait; with nothing there it returns nothing. What a subscription
// has in hand, and what somebody waits for in Request, is left to them.
func (b *Bus) Read(ctx context.Context, by core.Caller, recipient string, n int) ([]Message, error) {
	if err := b.mayRead(ctx, by, recipient, n); err != nil {
		return nil, err
	}
	var out []Message
	err := b.change(ctx, by, "read the mailbox of "+recipient, func(tx *audit.Tx) error {
		out = nil // it runs again where the disk was full
		found, err := b.unread(tx, recipient, n, nil)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, m := range found {
			taken := *m
			taken.Status = Taken
			out = append(out, taken)
		}
		return b.readIn(tx, recipient, found)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Peek shows what Read would take.
func (b *Bus) Peek(ctx context.Context, by core.Caller, recipient string, n int) ([]Message, error) {
	if err := b.mayRead(ctx, by, recipient, n); err != nil {
		return nil, err
	}
	var out []Message
	err := b.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		var err error
		out, err = record.Values(b.unread(tx, recipient, n, nil))
		return errors.Join(err, decorateAll(tx, out))
	})
	return out, audit.Explain("read the mailbox of "+recipient, err)
}

// mayRead checks who reads which mailbox.
func (b *Bus) mayRead(ctx context.Context, by core.Caller, recipient string, n int) error {
	if n < 1 || n > core.MaxPageSize {
		return core.Invalid("n", n, "1-100")
	}
	if by.Kind == core.Agent && recipient != by.Name {
		return core.Errorf(core.Denied, "recipient_id: %s can't read the mailbox of %q", by.Name, recipient).With("field", "recipient_id")
	}
	return b.foreign(ctx, by, recipient, b.checkMailbox(by.Tenant, recipient))
}

func (b *Bus) checkMailbox(tenant, recipient string) error {
	if recipient == System || recipient == Controller || b.opt.Directory.Known(tenant, recipient) {
		return nil
	}
	return b.stranger(tenant, "recipient_id", recipient, "an agent of this tenant, controller, system")
}

// unread returns up to n messages of a mailbox in the order in which they are
// read, without those that are in hand or kept for somebody.
func (b *Bus) unread(tx *audit.Tx, recipient string, n int, fits func(*Message) bool) ([]*Message, error) {
	t := b.of(tx.Tenant())
	now := tx.Now()
	var out []*Message
	err := boxes.Each(tx, record.Text(recipient), func(k record.Parts, _ struct{}) (bool, error) {
		seq := record.LastSeq(k)
		b.mu.Lock()
		_, taken := t.taken[slot{recipient, seq}]
		b.mu.Unlock()
		if taken {
			return true, nil
		}
		m, err := need(b.messages.At(tx, record.Seq(seq)))
		if err != nil {
			return false, err
		}
		if !m.expired(now) && !b.kept(t, m) && (fits == nil || fits(m)) {
			out = append(out, m)
		}
		return len(out) < n, nil
	})
	if err != nil {
		return nil, fmt.Errorf("scan the mailbox of %s: %w", recipient, err)
	}
	return out, nil
}

// kept reports whether somebody waits for just this answer.
func (b *Bus) kept(t *tenant, m *Message) bool {
	if m.CorrelationID == "" || m.MessageType != Response && m.MessageType != Error {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(t.waiting[m.CorrelationID]) > 0
}

// readIn records that messages of a mailbox were read. Those that are no
// longer there are passed over.
func (b *Bus) readIn(tx *audit.Tx, recipient string, messages []*Message) error {
	var ids []string
	for _, m := range messages {
		was, err := b.settle(tx, m, recipient, fate{Status: Taken, At: tx.Now()})
		if err != nil {
			return err
		}
		if was {
			ids = append(ids, m.MessageID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Record(audit.Entry{
		Type: "message.read", Subject: "mailbox", ID: recipient, Detail: map[string]any{"messages": ids},
	})
	return err
}

// settle takes a message out of a mailbox with what became of it; false when
// it was not there.
func (b *Bus) settle(tx *audit.Tx, m *Message, recipient string, f fate) (bool, error) {
	box := inBox(recipient, m.Priority, m.Seq)
	_, unread, err := boxes.Get(tx, box)
	if err != nil || !unread {
		return false, err
	}
	held, due := ofConsumer(m.Seq, toMailbox, recipient), m.ExpiresAt()
	again, late, err := inHands.Get(tx, held)
	if late {
		due, err = time.UnixMicro(int64(again)), inHands.Delete(tx, held)
	}
	err = errors.Join(err,
		boxes.Delete(tx.Derived(), box),
		dues.Delete(tx, dueKey(due, m.Seq, toMailbox, recipient)),
		fates.Put(tx, ofConsumer(m.Seq, toMailbox, recipient), f),
		resize(tx.Derived(), recipient, -1),
	)
	if err != nil {
		return false, fmt.Errorf("settle message %s for %s: %w", m.MessageID, recipient, err)
	}
	now := *m
	now.Status = f.Status
	tx.Changed("message", m.MessageID)
	t := b.of(tx.Tenant())
	tx.OnCommit(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.settled++
		delete(t.taken, slot{recipient, m.Seq})
	})
	return true, nil
}

// boxes are the mailboxes that a message goes to, and of a broadcast those
// that have no room for it. One that is meant for a single full mailbox is
// refused.
func (b *Bus) boxes(tx *audit.Tx, d *draft) (to, full []string, err error) {
	all := []string{d.Recipient}
	switch d.Recipient {
	case "":
		return nil, nil, nil
	case Broadcast:
		all = b.opt.Directory.All(tx.Tenant())
	}
	for _, name := range all {
		n, err := boxSize(tx, name)
		switch {
		case err != nil:
			return nil, nil, err
		case d.Recipient == Broadcast && name == d.Sender:
		case n < uint64(b.opt.MaxUnread):
			to = append(to, name)
		case d.Recipient == Broadcast:
			full = append(full, name)
		default:
			return nil, nil, core.Errorf(core.Conflict, "recipient_id: the mailbox of %s is full: %d unread messages; read some, or wait until they expire",
				name, b.opt.MaxUnread).With("field", "recipient_id").With("value", name)
		}
	}
	return to, full, nil
}

// deliver puts a new message into the mailboxes it goes to. For those that
// are full it is a dead letter at once.
func (b *Bus) deliver(tx *audit.Tx, m *Message, to, full []string) error {
	due := m.ExpiresAt()
	for _, name := range to {
		err := errors.Join(
			resize(tx.Derived(), name, 1),
			putDue(tx, due, m.Seq, toMailbox, name),
			boxes.Put(tx.Derived(), inBox(name, m.Priority, m.Seq), struct{}{}),
		)
		if err != nil {
			return fmt.Errorf("write message %s into the mailbox of %s: %w", m.MessageID, name, err)
		}
	}
	for _, name := range full {
		g := burial{kind: toMailbox, name: name, reason: "full"}
		refused := fate{Status: Refused, At: tx.Now(), Reason: "the mailbox is full"}
		if err := errors.Join(fates.Put(tx, ofConsumer(m.Seq, toMailbox, name), refused), g.bury(tx, m)); err != nil {
			return err
		}
	}
	return nil
}

// boxSize is how many unread messages a mailbox holds.
func boxSize(tx store.Tx, recipient string) (uint64, error) {
	n, _, err := boxSizes.Get(tx, record.Key(recipient))
	return n, err
}

// resize notes that messages came into a mailbox, or left it.
func resize(tx store.Tx, recipient string, by int) error {
	n, err := boxSize(tx, recipient)
	if err != nil {
		return err
	}
	tx.Add(countOpen, int64(by))
	if left := int(n) + by; left > 0 {
		return boxSizes.Put(tx, record.Key(recipient), uint64(left))
	}
	return boxSizes.Delete(tx, record.Key(recipient))
}

// Mailbox is one recipient's unread messages in numbers.
type Mailbox struct {
	RecipientID string    `json:"recipient_id"`
	Open        int       `json:"open"`
	Oldest      time.Time `json:"oldest,omitzero"` // when the oldest of them was accepted
}

// Mailboxes lists the mailboxes with unread messages, by recipient.
func (b *Bus) Mailboxes(ctx context.Context, tenant string) ([]Mailbox, error) {
	var out []Mailbox
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return boxSizes.Each(tx, nil, func(name record.Parts, n uint64) (bool, error) {
			at, err := b.oldest(tx, string(name))
			out = append(out, Mailbox{RecipientID: string(name), Open: int(n), Oldest: at})
			return true, err
		})
	})
	return out, audit.Explain("list the mailboxes", err)
}

// oldest is when the oldest message of a mailbox was accepted: the first of
// one of its priorities.
func (b *Bus) oldest(tx store.Tx, recipient string) (time.Time, error) {
	var first uint64
	for p := byte(1); p <= LowestPriority; p++ {
		err := boxes.Each(tx, record.Text(recipient).Byte(p), func(k record.Parts, _ struct{}) (bool, error) {
			if seq := k.Seq(); first == 0 || seq < first {
				first = seq
			}
			return false, nil
		})
		if err != nil {
			return time.Time{}, err
		}
	}
	m, err := need(b.messages.Glance(tx, record.Seq(first)))
	if err != nil {
		return time.Time{}, err
	}
	return m.Timestamp, nil
}

// TakeIn takes one message out of a mailbox as read, inside a transaction that
// changes something else: for a reader that keeps what it was sent in records of
// its own. One that is no longer there is passed over.
func (b *Bus) TakeIn(tx *audit.Tx, id, recipient string) error {
	seq, err := core.LocalUUID("message_id", tx.Tenant(), id)
	if err != nil {
		return err
	}
	m, err := b.messages.Glance(tx, record.Seq(seq))
	if err != nil || m == nil || m.MessageID != id {
		return err
	}
	return b.readIn(tx, recipient, []*Message{m})
}

// TakenIn reports whether the recipient of a message has read it.
func (b *Bus) TakenIn(tx store.Tx, id, recipient string) (bool, error) {
	seq, err := core.LocalUUID("message_id", tx.Tenant(), id)
	if err != nil {
		return false, err
	}
	f, _, err := fates.Get(tx, ofConsumer(seq, toMailbox, recipient))
	return f.Status == Taken, err
}
