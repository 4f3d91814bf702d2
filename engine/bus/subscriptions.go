package bus

import (
	"context"
	"time"

	"swarmdeck/engine/audit"
)

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
	Dead        int       `json:"dead"`    // dead letters that are kept, of a durable one
	Dropped     int64     `json:"dropped"` // older ones, which were let go
	CreatedAt   time.Time `json:"created_at,omitzero"`
}

// Subscriptions lists the open subscriptions and the durable ones, those that
// are furthest behind first.
func (b *Bus) Subscriptions(ctx context.Context, tenant string) ([]SubscriptionInfo, error) {
	var out []SubscriptionInfo
	open := map[string]bool{}
	for _, s := range b.open(tenant) {
		lag, err := s.Lag(ctx)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		info := SubscriptionInfo{
			Name: s.opt.Name, Pattern: s.opt.Pattern, RecipientID: s.opt.Mailbox, MessageType: s.opt.Type, By: s.opt.By,
			Open: true, Lag: lag, Unacked: len(s.flight), Missed: s.missed,
		}
		s.mu.Unlock()
		info.Cursor = s.cursor()
		if s.durable != nil {
			open[s.opt.Name] = true
			info.Durable, info.CreatedAt = true, s.durable.rec.CreatedAt
		}
		out = append(out, info)
	}
	closed, err := b.closedDurables(ctx, tenant, open)
	if err != nil {
		return nil, err
	}
	out = append(out, closed...)
	sortByLag(out)
	return out, b.tallies(ctx, tenant, out)
}

// tallies fills in how many dead letters durable subscriptions have.
func (b *Bus) tallies(ctx context.Context, tenant string, all []SubscriptionInfo) error {
	return explain("count the dead letters", b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		for i := range all {
			if !all[i].Durable {
				continue
			}
			kind := byte(toSubscription)
			if p, err := ParsePattern(all[i].Pattern); err == nil && p.system() {
				kind = toEvents
			}
			consumer := string(kind) + all[i].Name
			all[i].Dead, all[i].Dropped = int(b.dead.Counted(tx, string(bGrave), consumer)), tx.Counter(countDropped+consumer)
		}
		return nil
	}))
}

// open lists the open subscriptions of a tenant.
func (b *Bus) open(tenant string) []*Subscription {
	t := b.of(tenant)
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*Subscription
	for s := range t.subs {
		out = append(out, s)
	}
	return out
}

func (b *Bus) closedDurables(ctx context.Context, tenant string, open map[string]bool) ([]SubscriptionInfo, error) {
	var out []SubscriptionInfo
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return b.subs.Each(tx, func(rec *subscription) error {
			if open[rec.Name] {
				return nil
			}
			cursor, err := loadCursor(tx, rec.Name)
			out = append(out, SubscriptionInfo{
				Name: rec.Name, Pattern: rec.Pattern, MessageType: rec.Type, Durable: true, Cursor: cursor, CreatedAt: rec.CreatedAt,
			})
			return err
		})
	})
	if err != nil {
		return nil, explain("list the subscriptions", err)
	}
	for i := range out {
		s := &Subscription{b: b, t: b.of(tenant), opt: SubscribeOptions{Pattern: out[i].Pattern, Type: out[i].MessageType}, pos: out[i].Cursor}
		if s.pattern, err = ParsePattern(out[i].Pattern); err != nil {
			return nil, err
		}
		if out[i].Lag, err = s.Lag(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}
