package bus

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
	"swarmdeck/store"
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

var namePattern = core.Pattern(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

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
	if !namePattern().MatchString(name) {
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
	saved  uint64              // pos when the cursor was last noted to be saved, of a durable one
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
		err = audit.Explain("subscribe", b.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
			s.upto, err = s.start(tx)
			s.pos = s.upto
			return err
		}))
	}
	if err != nil {
		return nil, err
	}
	s.t.feed.join(s)
	b.mu.Lock()
	s.t.subs[s] = struct{}{}
	b.mu.Unlock()
	loop.Ring(s.bell)
	return s, nil
}

// start is the seq before the first that a new subscription may read.
func (s *Subscription) start(tx *audit.Tx) (uint64, error) {
	if s.opt.From > 0 {
		return s.opt.From - 1, nil
	}
	if s.pattern.system() {
		return tx.Next() - 1, nil
	}
	return s.b.messages.Newest(tx), nil
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
	err := s.b.flush(store.IfFull(context.Background(), store.Refuse), s.t) // a short write; nobody else would do it
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
