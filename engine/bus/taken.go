package bus

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

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
	f, _, err := fates.Get(tx, record.Seq(seq).Last(recipient))
	return f.Status == Taken, err
}
