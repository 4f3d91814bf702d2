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

// boxes are the mailboxes that a message goes to, and of a broadcast those
// that have no room for it. One that is meant for a single full mailbox is
// refused.
func (b *Bus) boxes(tx *audit.Tx, d *draft) (to, full []string, err error) {
	switch d.Recipient {
	case "":
		return nil, nil, nil
	case Broadcast:
		to = slices.Clone(b.opt.Directory.All(tx.Tenant()))
	default:
		to = []string{d.Recipient}
	}
	to = slices.DeleteFunc(to, func(name string) bool {
		if d.Recipient == Broadcast && name == d.Sender {
			return true
		}
		n, bad := boxSize(tx, name)
		if bad != nil {
			err = bad
		}
		if n < uint64(b.opt.MaxUnread) {
			return false
		}
		full = append(full, name)
		return true
	})
	if err == nil && d.Recipient != Broadcast && len(full) > 0 {
		err = core.Errorf(core.Conflict, "recipient_id: the mailbox of %s is full: %d unread messages; read some, or wait until they expire", d.Recipient, b.opt.MaxUnread).
			With("field", "recipient_id").With("value", d.Recipient)
	}
	return to, full, err
}

// deliver puts a new message into the mailboxes it goes to. For those that
// are full it is a dead letter at once.
func (b *Bus) deliver(tx *audit.Tx, m *Message, to, full []string) error {
	due := m.ExpiresAt()
	for _, name := range to {
		if err := resize(tx.Derived(), name, 1); err != nil {
			return err
		}
		if err := putDue(tx, due, m.Seq, toMailbox, name); err != nil {
			return err
		}
		if err := boxes.Put(tx.Derived(), inBox(name, m.Priority, m.Seq), struct{}{}); err != nil {
			return fmt.Errorf("write message %s into the mailbox of %s: %w", m.MessageID, name, err)
		}
	}
	for _, name := range full {
		if err := fates.Put(tx, record.Seq(m.Seq).Last(name), fate{Status: Refused, At: tx.Now(), Reason: "the mailbox is full"}); err != nil {
			return err
		}
		g := burial{b: b, kind: toMailbox, name: name, reason: ReasonFull}
		if err := g.add(tx, m); err != nil {
			return err
		}
		if err := g.record(tx); err != nil {
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
	return out, explain("list the mailboxes", err)
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
