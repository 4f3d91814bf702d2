package bus

import (
	"context"

	"swarmdeck/engine/audit"
)

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
		found, upto, err := s.waiting(ctx, pos)
		if err != nil {
			return n, explain("count the messages that wait", err)
		}
		if upto <= pos {
			break
		}
		n, pos = n+found, upto
	}
	return min(n, maxLag), nil
}

// waiting counts messages after a seq, and says up to where.
func (s *Subscription) waiting(ctx context.Context, seq uint64) (int, uint64, error) {
	if s.pattern.system() {
		found, upto, err := s.b.eventsAfter(ctx, s.t.name, seq, batch, s.fits)
		return len(found), upto, err
	}
	if found, upto, ok := s.t.feed.after(seq+1, tailMessages, s.fits, nil); ok {
		return len(found), upto, nil
	}
	return s.b.countAfter(ctx, s.t.name, seq, s.pattern, s.opt.Type)
}

const maxLag = 100_000

// Missed is how many messages expired before a subscription that is not
// durable came to them.
func (s *Subscription) Missed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed
}
