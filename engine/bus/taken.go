package bus

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// TakeIn takes one message out of a mailbox as read, inside a transaction that
// changes something else: for a reader that keeps what it was sent in records of
// its own. One that is no longer there is passed over.
func (b *Bus) TakeIn(tx *audit.Tx, id, recipient string) error {
	m, err := messageIn(tx, id)
	if err != nil || m == nil {
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
	var f fate
	_, err = fetch(tx, bFate, fateKey(seq, recipient), &f)
	return f.Status == Taken, err
}

// messageIn is a message without its payload; nil when it is no longer kept.
func messageIn(tx store.Tx, id string) (*Message, error) {
	seq, err := core.LocalUUID("message_id", tx.Tenant(), id)
	if err != nil {
		return nil, err
	}
	m, err := getHead(tx, seq)
	if err != nil || m == nil || m.MessageID != id {
		return nil, err
	}
	return m, nil
}
