package bus

import (
	"context"
	"errors"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Delivery is one message in a subscriber's hand.
type Delivery struct {
	Message Message
	s       *Subscription
}

// Next waits for the next message. It fails with ctx's error, or with
// CONFLICT when the subscription is closed.
func (s *Subscription) Next(ctx context.Context) (Delivery, error) {
	for {
		m, err := s.take(ctx)
		if err != nil {
			return Delivery{}, audit.Explain("read the next message", err)
		}
		if m != nil {
			return Delivery{Message: *m, s: s}, nil
		}
		select {
		case <-s.bell:
		case <-s.done:
			return Delivery{}, errClosed()
		case <-ctx.Done():
			return Delivery{}, ctx.Err()
		}
	}
}

// Poll is Next without waiting: it returns false when nothing is there now.
func (s *Subscription) Poll(ctx context.Context) (Delivery, bool, error) {
	m, err := s.take(ctx)
	if err != nil || m == nil {
		return Delivery{}, false, audit.Explain("read the next message", err)
	}
	return Delivery{Message: *m, s: s}, true, nil
}

func errClosed() error { return core.Errorf(core.Conflict, "the subscription is closed") }

// take returns the next message, nil when there is none yet.
func (s *Subscription) take(ctx context.Context) (*Message, error) {
	s.pull.Lock()
	defer s.pull.Unlock()
	s.mu.Lock()
	closed, full := s.closed, len(s.flight) >= maxFlight
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed()
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case full:
		return nil, nil
	case s.opt.Mailbox != "":
		return s.takeDirect(ctx)
	}
	return s.takeTopic(ctx)
}

func (s *Subscription) takeTopic(ctx context.Context) (*Message, error) {
	for {
		if len(s.buf) == 0 {
			s.pass()
			more, err := s.fill(ctx)
			if err != nil || !more {
				return nil, err
			}
			continue
		}
		m := s.buf[0]
		if s.expired(m) {
			if err := s.passExpired(ctx); err != nil {
				return nil, err
			}
			continue
		}
		s.buf = s.buf[1:]
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return nil, errClosed()
		}
		s.pos = m.Seq
		if s.durable != nil {
			s.flight[m.Seq] = m
		}
		return m, nil
	}
}

// pass notes that nothing up to where it looked was for this subscription. Now
// and then that is saved, so that a crash does not make it look again at all
// that was for others.
func (s *Subscription) pass() {
	s.mu.Lock()
	s.pos = max(s.pos, s.upto)
	far := s.durable != nil && s.pos-s.saved >= saveEvery
	if far {
		s.saved = s.pos
	}
	s.mu.Unlock()
	if far {
		s.b.moved(s)
	}
}

const saveEvery = 1000 // messages, or events, that were for others

// batch is how many messages are read ahead.
const batch = 256

// fill reads ahead; false when there is nothing more for now.
func (s *Subscription) fill(ctx context.Context) (bool, error) {
	found, upto, err := s.read(ctx, s.upto+1)
	if err != nil {
		return false, err
	}
	more := upto > s.upto
	s.buf, s.upto = found, max(s.upto, upto)
	return more, nil
}

// read returns a batch of messages from a seq on, from the feed where it reaches
// back that far, and the seq up to which it looked.
func (s *Subscription) read(ctx context.Context, from uint64) ([]*Message, uint64, error) {
	if s.pattern.system() {
		return s.b.eventsAfter(ctx, s.t.name, from-1, batch, s.fits)
	}
	if found, upto, ok := s.t.feed.after(from, batch, s.fits); ok {
		return found, upto, nil
	}
	return s.b.topicsAfter(ctx, s.t.name, from-1, batch, s.pattern, s.fits)
}

func (s *Subscription) fits(m *Message) bool {
	return (s.opt.Type == "" || m.MessageType == s.opt.Type) && (s.opt.Mailbox != "" || s.pattern.Match(m.Topic))
}

func (s *Subscription) expired(m *Message) bool {
	return !s.pattern.system() && m.expired(s.b.ledger.Clock().Now())
}

// passExpired takes the expired messages from the front of what was read
// ahead. Those that a durable subscription lost become dead letters.
func (s *Subscription) passExpired(ctx context.Context) error {
	n := 0
	for n < len(s.buf) && s.expired(s.buf[n]) {
		n++
	}
	gone := s.buf[:n]
	if s.durable != nil {
		gone = slices.DeleteFunc(slices.Clone(gone), func(m *Message) bool { return !m.ExpiresAt().After(s.durable.rec.CreatedAt) })
		if err := s.b.lose(ctx, s.t.name, s.opt.Name, gone); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.pos = s.buf[n-1].Seq
	if s.durable == nil {
		s.missed += n
	}
	s.mu.Unlock()
	s.buf = s.buf[n:]
	return nil
}

// takeDirect takes the mailbox's next message into this subscription's hand.
func (s *Subscription) takeDirect(ctx context.Context) (*Message, error) {
	b, t := s.b, s.t
	for {
		b.mu.Lock()
		settled := t.settled
		b.mu.Unlock()
		var found []*Message
		err := b.ledger.View(ctx, t.name, func(tx *audit.Tx) (err error) {
			found, err = b.unread(tx, s.opt.Mailbox, 1, s.fits)
			return err
		})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		m := found[0]
		at := slot{s.opt.Mailbox, m.Seq}
		s.mu.Lock()
		b.mu.Lock()
		// Somebody may have been faster since the snapshot was taken.
		_, taken := t.taken[at]
		free := !taken && t.settled == settled
		if free && !s.closed {
			t.taken[at] = s
			s.flight[m.Seq] = m
		}
		closed := s.closed
		b.mu.Unlock()
		s.mu.Unlock()
		if closed {
			return nil, errClosed()
		}
		if free {
			return m, nil
		}
	}
}

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
	loop.Ring(s.bell) // Next waits when too many are in hand
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
	err := audit.Explain("save what was acknowledged", b.ledger.Append(ctx, core.Self(t.name, "bus"), write))
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
