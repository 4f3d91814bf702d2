package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
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
		found, err := b.unread(tx, recipient, n, nil)
		for _, m := range found {
			if err == nil {
				err = decorate(tx, m)
			}
			m.Deliveries = nil
			out = append(out, *m)
		}
		return err
	})
	return out, explain("read the mailbox of "+recipient, err)
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
		fates.Put(tx, record.Seq(m.Seq).Last(recipient), f),
		resize(tx.Derived(), recipient, -1),
	)
	if err != nil {
		return false, fmt.Errorf("settle message %s for %s: %w", m.MessageID, recipient, err)
	}
	now := *m
	now.Status = f.Status
	tx.Changed("message", m.MessageID, &now)
	t := b.of(tx.Tenant())
	tx.OnCommit(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.settled++
		delete(t.taken, slot{recipient, m.Seq})
	})
	return true, nil
}
