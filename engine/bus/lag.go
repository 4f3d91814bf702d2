package bus

import (
	"context"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Lag is how many messages wait for this subscription, not counting those that
// were delivered. It looks at up to 100,000 messages that may still be alive,
// or 10,000 of the engine's events.
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
	look := uint64(maxLookEvents)
	if !s.pattern.system() {
		look = maxLag
		alive, err := s.b.alive(ctx, s.t.name, pos)
		if err != nil {
			return 0, explain("count the messages that wait", err)
		}
		pos = max(pos, alive)
	}
	n := 0
	for end := pos + look; pos < end; {
		found, upto, err := s.waiting(ctx, pos, int(min(end-pos, tailMessages)))
		if err != nil {
			return n, explain("count the messages that wait", err)
		}
		if upto <= pos {
			break
		}
		n, pos = n+found, upto
	}
	return n, nil
}

// alive is the seq before the oldest message after seq that has not certainly
// expired. It looks only when there are many.
func (b *Bus) alive(ctx context.Context, tenant string, seq uint64) (uint64, error) {
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		if b.messages.Newest(tx) < seq+tailMessages {
			return nil
		}
		lo, _, err := b.messages.Span(tx, core.Filter{Since: tx.Now().Add(-MaxTTL * time.Second)})
		seq = lo - 1
		return err
	})
	return seq, err
}

// waiting counts messages after a seq, and says up to where.
func (s *Subscription) waiting(ctx context.Context, seq uint64, look int) (int, uint64, error) {
	if s.pattern.system() {
		events, err := s.b.ledger.Since(ctx, s.t.name, seq, min(look, batch))
		n := 0
		for i := range events {
			seq = events[i].Seq
			if m := derive(&events[i]); m != nil && s.fits(m) {
				n++
			}
		}
		return n, seq, err
	}
	if found, upto, ok := s.t.feed.after(seq+1, tailMessages, s.fits, nil); ok {
		return len(found), upto, nil
	}
	return s.b.countAfter(ctx, s.t.name, seq, s.pattern, s.opt.Type)
}

// Bounds of Lag: it is asked for often, and history is long.
const (
	maxLag        = 100_000
	maxLookEvents = 10_000
)

// Missed is how many messages expired before a subscription that is not
// durable came to them.
func (s *Subscription) Missed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed
}
