package bus

import (
	"cmp"
	"context"
	"slices"
	"strings"
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
		return Figures{}, explain("count the messages", err)
	}
	return Figures{
		Messages: b.messages.Count(c), Open: c.Counter(countOpen), Unanswered: c.Counter(countAsks),
		Dead: b.dead.Counted(c, countDead, unsent), Topics: b.topics.Count(c), Subscriptions: b.subs.Count(c), Seq: b.messages.Newest(c),
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
	var all []Topic
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return b.topics.Each(tx, func(t *Topic) error {
			if f.Finds(t.Topic) && f.Within(t.LastAt) {
				all = append(all, *t)
			}
			return nil
		})
	})
	if err != nil {
		return none, explain("list the topics", err)
	}
	slices.SortFunc(all, func(a, b Topic) int { return cmp.Compare(b.LastSeq, a.LastSeq) })
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

func sortByLag(all []SubscriptionInfo) {
	slices.SortFunc(all, func(a, b SubscriptionInfo) int {
		return cmp.Or(cmp.Compare(b.Lag, a.Lag), strings.Compare(a.Name, b.Name), strings.Compare(a.Pattern, b.Pattern),
			strings.Compare(a.RecipientID, b.RecipientID), strings.Compare(a.By, b.By))
	})
}

// Unanswered lists the requests that wait for their answer, oldest first, at
// most 100.
func (b *Bus) Unanswered(ctx context.Context, tenant string) ([]Message, error) {
	var out []Message
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		seqs, err := live(tx, unanswered)
		if err != nil {
			return err
		}
		for _, seq := range seqs[:min(len(seqs), core.MaxPageSize)] {
			m, err := need(b.messages.At(tx, record.Seq(seq)))
			if err != nil {
				return err
			}
			out = append(out, *m)
		}
		return decorateAll(tx, out)
	})
	return out, explain("list the unanswered requests", err)
}

// auditables are the records that reconcile compares.
func (b *Bus) auditables() []audit.Auditable {
	return []audit.Auditable{b.messages.Auditable(), b.dead.Auditable(), b.topics.Auditable(), b.subs.Auditable(), unsettled{}}
}
