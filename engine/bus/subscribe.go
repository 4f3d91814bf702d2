package bus

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// SubscribeOptions say what a subscription reads: the topics of a Pattern, or
// a Mailbox.
type SubscribeOptions struct {
	Pattern string // topics; one that begins with "sys" reads the engine's events
	Mailbox string // a recipient; readers of the same mailbox share its messages
	// Name makes a subscription to a pattern durable: it goes on where it had
	// acknowledged to when it is opened again under that name, by one reader
	// at a time. "" begins anew each time and needs no acknowledgement.
	Name string
	Type Type // only messages of this type; "" means any
	// From is the seq of the first message that a new subscription may read;
	// 0 means only what is accepted from now on. Of the engine's events it is
	// the seq in the audit log.
	From uint64
	By   string // who reads, for the list of subscriptions
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func (o *SubscribeOptions) check() (Pattern, error) {
	var p Pattern
	switch {
	case (o.Pattern == "") == (o.Mailbox == ""):
		return p, core.Errorf(core.InvalidInput, "pattern or mailbox: a subscription has exactly one of them").With("field", "pattern")
	case o.Mailbox != "" && o.Name != "":
		return p, core.Errorf(core.InvalidInput, "name: a mailbox keeps its messages by itself; only a subscription to a pattern has a name").With("field", "name")
	case o.Mailbox != "" && o.From != 0:
		return p, core.Errorf(core.InvalidInput, "from: a mailbox is read from its first message").With("field", "from")
	case o.Type != "" && !slices.Contains(Types(), o.Type):
		return p, core.Invalid("message_type", string(o.Type), "event, request, response, error")
	}
	if o.Name != "" {
		if err := checkName(o.Name); err != nil {
			return p, err
		}
	}
	if o.Pattern == "" {
		return p, nil
	}
	return ParsePattern(o.Pattern)
}

func checkName(name string) error {
	if !namePattern.MatchString(name) {
		return core.Invalid("name", name, "1-64 of A-Z a-z 0-9 _ . -, beginning with a letter or digit")
	}
	return nil
}

// Subscription reads messages at its own pace. One goroutine calls Next; the
// deliveries may be acknowledged from any. Close it when done.
type Subscription struct {
	b       *Bus
	t       *tenant
	opt     SubscribeOptions
	pattern Pattern
	durable *durable // nil unless it has a name
	bell    chan struct{}
	done    chan struct{}

	pull sync.Mutex // held by Next, while the store is read too; guards buf and upto
	buf  []*Message // read ahead
	upto uint64     // looked at up to here

	mu     sync.Mutex
	pos    uint64              // delivered, or passed over, up to here
	flight map[uint64]*Message // delivered and neither acknowledged nor refused
	missed int                 // expired before they were read, not durable
	closed bool
}

// maxFlight is how many deliveries may be unacknowledged: Next waits then.
const maxFlight = 1000

// Subscribe begins to read. It fails with CONFLICT when a durable subscription
// of that name is open already or has another pattern or type.
func (b *Bus) Subscribe(ctx context.Context, tenant string, opt SubscribeOptions) (*Subscription, error) {
	pattern, err := opt.check()
	if err != nil {
		return nil, err
	}
	if opt.Mailbox != "" {
		by := core.Self(tenant, "reader")
		if err := b.foreign(ctx, by, opt.Mailbox, b.checkMailbox(tenant, opt.Mailbox)); err != nil {
			return nil, err
		}
	}
	s := &Subscription{
		b: b, t: b.of(tenant), opt: opt, pattern: pattern, bell: make(chan struct{}, 1), done: make(chan struct{}),
		flight: map[uint64]*Message{},
	}
	if opt.Name != "" {
		err = b.openDurable(ctx, s)
	} else {
		err = explain("subscribe", b.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
			s.upto, err = s.start(tx)
			return err
		}))
	}
	if err != nil {
		return nil, err
	}
	s.pos = s.upto
	s.t.feed.join(s)
	b.mu.Lock()
	s.t.subs[s] = struct{}{}
	b.mu.Unlock()
	ring(s.bell)
	return s, nil
}

// start is the seq before the first that a new subscription may read.
func (s *Subscription) start(tx *audit.Tx) (uint64, error) {
	if s.opt.From > 0 {
		return s.opt.From - 1, nil
	}
	if s.pattern.system() {
		return newestEvent(tx)
	}
	return uint64(tx.Counter(countMessages)), nil
}

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
			return Delivery{}, explain("read the next message", err)
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
		return Delivery{}, false, explain("read the next message", err)
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
			s.mu.Lock()
			s.pos = max(s.pos, s.upto)
			s.mu.Unlock()
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

// batch is how many messages are read ahead.
const batch = 256

// fill reads ahead; false when there is nothing more for now.
func (s *Subscription) fill(ctx context.Context) (bool, error) {
	found, upto, err := s.read(ctx, s.upto+1, batch)
	if err != nil {
		return false, err
	}
	more := upto > s.upto
	s.buf, s.upto = found, max(s.upto, upto)
	return more, nil
}

// read returns up to n messages from a seq on, from the feed where it reaches
// back that far, and the seq up to which it looked.
func (s *Subscription) read(ctx context.Context, from uint64, n int) ([]*Message, uint64, error) {
	if s.pattern.system() {
		return s.b.eventsAfter(ctx, s.t.name, from-1, n, s.fits)
	}
	if found, upto, ok := s.t.feed.after(from, n, s.fits, nil); ok {
		return found, upto, nil
	}
	return s.b.topicsAfter(ctx, s.t.name, from-1, n, s.pattern, s.fits)
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

// Lag is how many messages wait for this subscription, not counting those that
// were delivered. It looks at up to 100,000.
func (s *Subscription) Lag(ctx context.Context) (int, error) {
	if s.opt.Mailbox != "" {
		n := 0
		err := s.b.ledger.View(ctx, s.t.name, func(tx *audit.Tx) error {
			found, err := s.b.unread(tx, s.opt.Mailbox, maxLag, s.fits)
			n = len(found)
			return err
		})
		return n, explain("count the messages that wait", err)
	}
	s.mu.Lock()
	pos := s.pos
	s.mu.Unlock()
	n := 0
	for n < maxLag {
		found, upto, err := s.read(ctx, pos+1, 1000)
		if err != nil {
			return n, explain("count the messages that wait", err)
		}
		if upto <= pos {
			break
		}
		n, pos = n+len(found), upto
	}
	return n, nil
}

const maxLag = 100_000

// Missed is how many messages expired before a subscription that is not
// durable came to them.
func (s *Subscription) Missed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed
}

// cursor is the seq up to which everything was acknowledged.
func (s *Subscription) cursor() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	upto := s.pos
	for seq := range s.flight {
		upto = min(upto, seq-1)
	}
	return upto
}

// holds reports what a durable subscription did with a message: done with it
// or had it in hand.
func (s *Subscription) holds(seq uint64) (done, inHand bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, inHand = s.flight[seq]
	return seq <= s.pos && !inHand, inHand
}

// Close ends the subscription. What was acknowledged is on disk when it
// returns nil; what was delivered and not acknowledged will be delivered
// again, to another reader of the mailbox or when the durable subscription is
// opened again.
func (s *Subscription) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	s.mu.Unlock()
	if s.durable != nil {
		s.b.moved(s)
	}
	err := s.b.flush(context.Background(), s.t) // a short write; nobody else would do it
	s.b.mu.Lock()
	for at, who := range s.t.taken {
		if who == s {
			delete(s.t.taken, at)
		}
	}
	if s.durable != nil {
		s.durable.open = nil
	}
	delete(s.t.subs, s)
	s.b.mu.Unlock()
	s.t.feed.leave(s)
	s.t.feed.ring()
	if err != nil {
		return fmt.Errorf("close the subscription: %w", err)
	}
	return nil
}
