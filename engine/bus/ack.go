package bus

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// acked is a mailbox delivery that was acknowledged.
type acked struct {
	recipient string
	m         *Message
}

// Ack says that the message was dealt with and must not come again. It is
// written together with others within some milliseconds: a crash before that
// delivers the message again. After Close it is too late for that.
func (d Delivery) Ack() {
	s := d.s
	s.mu.Lock()
	m, inHand := s.flight[d.Message.Seq]
	inHand = inHand && !s.closed
	if inHand {
		delete(s.flight, d.Message.Seq)
	}
	s.mu.Unlock()
	if !inHand {
		return
	}
	ring(s.bell) // Next waits when too many are in hand
	if s.opt.Mailbox == "" {
		s.b.moved(s)
		return
	}
	s.b.mu.Lock()
	s.t.acks = append(s.t.acks, acked{s.opt.Mailbox, m})
	s.b.mu.Unlock()
	s.b.loop.Ring(s.t.name)
}

// moved notes that a durable subscription's cursor may have moved.
func (b *Bus) moved(s *Subscription) {
	b.mu.Lock()
	s.t.dirty[s] = struct{}{}
	b.mu.Unlock()
	b.loop.Ring(s.t.name)
}

// Refuse says that the message can't be dealt with: it becomes a dead letter
// with the reason, 1-500 characters.
func (d Delivery) Refuse(ctx context.Context, reason string) error {
	s := d.s
	reason = strings.TrimSpace(reason)
	if n := utf8.RuneCountInString(reason); n < 1 || n > maxReason || !utf8.ValidString(reason) {
		return core.Invalid("reason", reason, "1-500 characters")
	}
	if s.opt.Mailbox == "" && s.durable == nil {
		return core.Errorf(core.Conflict, "only what a mailbox or a durable subscription delivered can be refused")
	}
	s.mu.Lock()
	m, inHand := s.flight[d.Message.Seq]
	inHand = inHand && !s.closed
	s.mu.Unlock()
	if !inHand {
		return core.Errorf(core.Conflict, "message %s is no longer in hand", d.Message.MessageID)
	}
	by := core.Self(s.t.name, "bus")
	err := s.b.change(ctx, by, "refuse message "+m.MessageID, func(tx *audit.Tx) error {
		return s.b.refuseIn(tx, s, m, reason)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.flight, m.Seq)
	s.mu.Unlock()
	ring(s.bell)
	if s.durable != nil {
		s.b.moved(s)
	}
	return nil
}

const maxReason = 500

func (b *Bus) refuseIn(tx *audit.Tx, s *Subscription, m *Message, reason string) error {
	kind, name := byte(toSubscription), s.opt.Name
	switch {
	case s.pattern.system():
		kind = toEvents
	case s.opt.Mailbox != "":
		kind, name = toMailbox, s.opt.Mailbox
		if was, err := b.settle(tx, m, name, fate{Status: Refused, At: tx.Now(), Reason: reason}); err != nil || !was {
			return err
		}
	}
	d := burial{b: b, kind: kind, name: name, reason: ReasonRefused, detail: reason}
	if err := d.add(tx, m); err != nil {
		return err
	}
	return d.record(tx)
}

// flush writes what was acknowledged since the last one.
func (b *Bus) flush(ctx context.Context, t *tenant) error {
	t.flushing.Lock() // who comes second finds the first one's work on disk
	defer t.flushing.Unlock()
	b.mu.Lock()
	acks, dirty := t.acks, t.dirty
	t.acks, t.dirty = nil, map[*Subscription]struct{}{}
	b.mu.Unlock()
	if len(acks) == 0 && len(dirty) == 0 {
		return nil
	}
	byBox := map[string][]*Message{}
	for _, a := range acks {
		byBox[a.recipient] = append(byBox[a.recipient], a.m)
	}
	write := func(tx *audit.Tx) error {
		for box, messages := range byBox {
			if err := b.readIn(tx, box, messages); err != nil {
				return err
			}
		}
		for s := range dirty {
			if err := b.saveCursor(tx, s.opt.Name, s.cursor()); err != nil {
				return err
			}
		}
		return nil
	}
	// A cursor is no state that the log tells of: Append needs no event.
	err := explain("save what was acknowledged", b.ledger.Append(ctx, core.Self(t.name, "bus"), write))
	if err == nil || errors.Is(err, store.ErrNoTenant) {
		return nil
	}
	b.mu.Lock()
	t.acks = append(acks, t.acks...)
	for s := range dirty {
		t.dirty[s] = struct{}{}
	}
	b.mu.Unlock()
	return err
}

// saveCursor moves a durable subscription's cursor, never back.
func (b *Bus) saveCursor(tx *audit.Tx, name string, upto uint64) error {
	was, err := loadCursor(tx, name)
	if err != nil || upto <= was {
		return err
	}
	if known, err := b.subs.Load(tx, name); err != nil || known == nil { // removed meanwhile
		return err
	}
	return cursors.Put(tx, record.Key(name), upto)
}

func loadCursor(tx *audit.Tx, name string) (uint64, error) {
	upto, _, err := cursors.Get(tx, record.Key(name))
	return upto, err
}
