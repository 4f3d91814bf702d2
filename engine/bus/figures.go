package bus

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Figures are a tenant's messages in numbers, from counters.
type Figures struct {
	Messages      int64  `json:"messages"` // kept
	Open          int64  `json:"open"`     // unread, in all mailboxes
	Unanswered    int64  `json:"unanswered"`
	Dead          int64  `json:"dead"` // letters that were not sent again
	Topics        int64  `json:"topics"`
	Subscriptions int64  `json:"subscriptions"` // durable
	Seq           uint64 `json:"seq"`           // of the newest message
}

// Figures returns a tenant's messages in numbers, from memory.
func (b *Bus) Figures(ctx context.Context, tenant string) (Figures, error) {
	c, err := b.ledger.Counts(ctx, tenant)
	if err != nil {
		return Figures{}, audit.Explain("count the messages", err)
	}
	return Figures{
		Messages: b.messages.Count(c), Open: c.Counter(countOpen), Unanswered: c.Counter(countAsks),
		Dead: c.Counter(countDead), Topics: b.topics.Count(c), Subscriptions: b.subs.Count(c), Seq: b.messages.Newest(c),
	}, nil
}

// Topic is a topic with messages that are kept.
type Topic struct {
	Topic    string    `json:"topic"`
	Messages int64     `json:"messages"` // so far
	LastSeq  uint64    `json:"last_seq"`
	LastAt   time.Time `json:"last_at"`

	// Filled in by Topics.
	Subscribers int `json:"subscribers"` // open or durable
	Lag         int `json:"lag"`         // of the one furthest behind, over all it reads
}

// Topics lists the topics, those with the newest messages first. f.Match looks
// into the name; of the other fields only the page counts.
func (b *Bus) Topics(ctx context.Context, tenant string, f core.Filter) (core.Page[Topic], error) {
	var none core.Page[Topic]
	f, err := f.Check()
	if err != nil {
		return none, err
	}
	all, err := record.Values(b.topics.List(ctx, tenant))
	if err != nil {
		return none, audit.Explain("list the topics", err)
	}
	all = slices.DeleteFunc(all, func(t Topic) bool { return !f.Finds(t.Topic) || !f.Within(t.LastAt) })
	core.Sort(all, func(a, b Topic) int { return cmp.Compare(b.LastSeq, a.LastSeq) })
	page := core.PageOf(all, f)
	subs, err := b.Subscriptions(ctx, tenant)
	if err != nil {
		return none, err
	}
	for _, s := range subs {
		p, err := ParsePattern(s.Pattern)
		if err != nil {
			continue // a mailbox
		}
		for i := range page.Items {
			if t := &page.Items[i]; p.Match(t.Topic) {
				t.Subscribers++
				t.Lag = max(t.Lag, s.Lag)
			}
		}
	}
	return page, nil
}

// SubscriptionInfo is what a list of subscriptions shows.
type SubscriptionInfo struct {
	Name        string    `json:"name,omitempty"` // of a durable one
	Pattern     string    `json:"pattern,omitempty"`
	RecipientID string    `json:"recipient_id,omitempty"` // whose mailbox
	MessageType Type      `json:"message_type,omitempty"`
	By          string    `json:"by,omitempty"` // who reads
	Durable     bool      `json:"durable"`
	Open        bool      `json:"open"`   // has a reader
	Cursor      uint64    `json:"cursor"` // done with all up to this seq
	Lag         int       `json:"lag"`    // messages that wait
	Unacked     int       `json:"unacked"`
	Missed      int       `json:"missed"`
	CreatedAt   time.Time `json:"created_at,omitzero"`
}

// Subscriptions lists the open subscriptions and the durable ones, those that
// are furthest behind first.
func (b *Bus) Subscriptions(ctx context.Context, tenant string) ([]SubscriptionInfo, error) {
	open := b.open(tenant)
	closed, err := b.closed(ctx, tenant, open)
	if err != nil {
		return nil, err
	}
	var out []SubscriptionInfo
	for i, s := range append(open, closed...) {
		lag, err := s.Lag(ctx)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		info := SubscriptionInfo{
			Name: s.opt.Name, Pattern: s.opt.Pattern, RecipientID: s.opt.Mailbox, MessageType: s.opt.Type, By: s.opt.By,
			Open: i < len(open), Lag: lag, Unacked: len(s.flight), Missed: s.missed,
		}
		s.mu.Unlock()
		info.Cursor = s.cursor()
		if s.durable != nil {
			info.Durable, info.CreatedAt = true, s.durable.rec.CreatedAt
		}
		out = append(out, info)
	}
	core.Sort(out, func(a, b SubscriptionInfo) int {
		return cmp.Or(cmp.Compare(b.Lag, a.Lag), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Pattern, b.Pattern),
			cmp.Compare(a.RecipientID, b.RecipientID), cmp.Compare(a.By, b.By))
	})
	return out, nil
}

// open lists the open subscriptions of a tenant.
func (b *Bus) open(tenant string) []*Subscription {
	t := b.of(tenant)
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(t.subs))
}

// closed are the durable subscriptions without a reader, as one would find them.
func (b *Bus) closed(ctx context.Context, tenant string, open []*Subscription) (all []*Subscription, err error) {
	read := map[string]bool{}
	for _, s := range open {
		read[s.opt.Name] = true
	}
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return b.subs.Each(tx, func(rec *subscription) error {
			if read[rec.Name] {
				return nil
			}
			opt := SubscribeOptions{Name: rec.Name, Pattern: rec.Pattern, Type: rec.Type}
			p, bad := ParsePattern(rec.Pattern)
			cursor, err := loadCursor(tx, rec.Name)
			all = append(all, &Subscription{b: b, t: b.of(tenant), opt: opt, pattern: p, durable: &durable{rec: *rec}, pos: cursor})
			return cmp.Or(bad, err)
		})
	})
	return all, audit.Explain("list the subscriptions", err)
}

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
		return n, audit.Explain("count the messages that wait", err)
	}
	s.mu.Lock()
	pos := s.pos
	s.mu.Unlock()
	look := uint64(maxLookEvents)
	if !s.pattern.system() {
		look = maxLag
		alive, err := s.b.alive(ctx, s.t.name, pos)
		if err != nil {
			return 0, audit.Explain("count the messages that wait", err)
		}
		pos = max(pos, alive)
	}
	n := 0
	for end := pos + look; pos < end; {
		found, upto, err := s.waiting(ctx, pos, int(min(end-pos, tailMessages)))
		if err != nil {
			return n, audit.Explain("count the messages that wait", err)
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
	if found, upto, ok := s.t.feed.after(seq+1, tailMessages, s.fits); ok {
		return len(found), upto, nil
	}
	return s.b.countAfter(ctx, s.t.name, seq, s.pattern, s.opt.Type)
}

// Bounds of Lag: it is asked for often, and history is long.
const (
	maxLag        = 100_000
	maxLookEvents = 10_000
)
