package bus

import (
	"context"
	"errors"
	"maps"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// durable is a subscription that outlives its readers.
type durable struct {
	rec     subscription
	pattern Pattern
	open    *Subscription // guarded by Bus.mu
}

// subscription is a durable subscription's record, and what the audit log says
// of it.
type subscription struct {
	Name      string    `json:"name"`
	Pattern   string    `json:"pattern"`
	Type      Type      `json:"message_type,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// maxDurable is how many durable subscriptions a tenant may have: each costs
// every message a look.
const maxDurable = 100

func (b *Bus) subscriptionKind() record.Table[subscription] {
	return &record.Kind[*subscription]{
		Noun: "durable subscription", Subject: "subscription", Bucket: "message.sub", Limit: maxDurable, Quiet: true, Ledger: b.ledger,
		ID:    func(s *subscription) string { return s.Name },
		Whole: true,
	}
}

func (d *durable) wants(topic string, typ Type) bool {
	return (d.rec.Type == "" || d.rec.Type == typ) && d.pattern.Match(topic)
}

// durables are the durable subscriptions of a transaction's tenant. They are
// read once, on the store's writer: only there nothing can change meanwhile.
func (b *Bus) durables(tx *audit.Tx) (map[string]*durable, error) {
	t := b.of(tx.Tenant())
	b.mu.Lock()
	known := t.durable
	b.mu.Unlock()
	if known != nil {
		return known, nil
	}
	known = map[string]*durable{}
	err := b.subs.Each(tx, func(rec *subscription) error {
		p, err := ParsePattern(rec.Pattern)
		known[rec.Name] = &durable{rec: *rec, pattern: p}
		return err
	})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	t.durable = known
	b.mu.Unlock()
	return known, nil
}

// openDurable opens the durable subscription s, making it when it is new.
func (b *Bus) openDurable(ctx context.Context, s *Subscription) error {
	by := core.Self(s.t.name, "bus")
	made := false
	err := b.change(ctx, by, "open subscription "+s.opt.Name, func(tx *audit.Tx) error {
		all, err := b.durables(tx)
		if err != nil {
			return err
		}
		d := all[s.opt.Name]
		if d == nil {
			made = true
			return b.makeDurable(tx, s)
		}
		if d.rec.Pattern != s.opt.Pattern || d.rec.Type != s.opt.Type {
			return core.Errorf(core.Conflict, "name: subscription %s is of pattern %q and type %q; remove it first, or take another name",
				d.rec.Name, d.rec.Pattern, d.rec.Type).With("field", "name")
		}
		if s.upto, err = loadCursor(tx, d.rec.Name); err != nil {
			return err
		}
		s.pos = s.upto // before others see it: what is behind has been read
		b.mu.Lock()
		defer b.mu.Unlock()
		if d.open != nil {
			return core.Errorf(core.Conflict, "name: subscription %s has a reader already", d.rec.Name).With("field", "name")
		}
		d.open, s.durable = s, d
		return nil
	})
	if err != nil && s.durable != nil { // nothing of it was committed
		b.mu.Lock()
		s.durable.open = nil
		b.mu.Unlock()
		if made {
			b.keepDurable(s.t, s.opt.Name, nil)
		}
	}
	return err
}

// makeDurable makes the durable subscription that s is to read.
func (b *Bus) makeDurable(tx *audit.Tx, s *Subscription) error {
	d := &durable{rec: subscription{Name: s.opt.Name, Pattern: s.opt.Pattern, Type: s.opt.Type}, pattern: s.pattern, open: s}
	if err := b.subs.Save(tx, record.Event{Type: "subscription.created"}, nil, &d.rec); err != nil {
		return err
	}
	var err error
	if s.upto, err = s.start(tx); err != nil { // after its own event
		return err
	}
	s.pos = s.upto
	if err := cursors.Put(tx, record.Key(d.rec.Name), s.upto); err != nil {
		return err
	}
	tx.Changed("message", "")
	s.durable = d
	b.keepDurable(s.t, d.rec.Name, d)
	return nil
}

func (b *Bus) removeDurable(tx *audit.Tx, rec *subscription) error {
	name := rec.Name
	if err := errors.Join(b.subs.Remove(tx, record.Event{Type: "subscription.removed"}, rec), cursors.Delete(tx, record.Key(name))); err != nil {
		return err
	}
	tx.Changed("message", "")
	b.keepDurable(b.of(tx.Tenant()), name, nil)
	return nil
}

// keepDurable replaces a durable subscription, nil removes it. It is the last
// step of its transaction, so that the next one in the same commit sees it.
// The map itself is never changed: transactions read it without a lock.
func (b *Bus) keepDurable(t *tenant, name string, d *durable) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := maps.Clone(t.durable)
	if all[name] = d; d == nil {
		delete(all, name)
	}
	t.durable = all
}

// Unsubscribe removes a durable subscription that has no reader, with all that
// waits for it.
func (b *Bus) Unsubscribe(ctx context.Context, by core.Caller, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	var gone *durable
	err := b.change(ctx, by, "remove subscription "+name, func(tx *audit.Tx) error {
		all, err := b.durables(tx)
		if err != nil {
			return err
		}
		d := all[name]
		if d == nil {
			return core.Missing("subscription", name)
		}
		b.mu.Lock()
		open := d.open != nil
		b.mu.Unlock()
		if open {
			return core.Errorf(core.Conflict, "name: subscription %s has a reader", name).With("field", "name")
		}
		gone = d
		return b.removeDurable(tx, &d.rec)
	})
	if err != nil && gone != nil { // nothing of it was committed
		b.keepDurable(b.of(by.Tenant), name, gone)
	}
	return err
}
