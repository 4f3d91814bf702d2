package bus

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// sweepSlice is how many expired messages one transaction deals with.
const sweepSlice = 128

// expire makes dead letters of what has expired and returns when to look
// again; zero when nothing is left.
func (b *Bus) expire(ctx context.Context, tenant string) (time.Time, error) {
	for {
		var next time.Time
		var due []record.Key
		err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			return dues.Each(tx, nil, func(k record.Parts, _ struct{}) (bool, error) {
				if at, _, _, _ := readDue(k); at.After(tx.Now()) {
					next = at
					return false, nil
				}
				due = append(due, record.Key(bytes.Clone(k)))
				return len(due) < sweepSlice, nil
			})
		})
		if err != nil || len(due) == 0 {
			return next, err
		}
		// Append: where readers were faster nothing is left to tell of.
		err = b.ledger.Append(ctx, core.Self(tenant, "bus"), func(tx *audit.Tx) error { return b.sweep(tx, due) })
		if err != nil {
			return next, audit.Explain("end expired messages", err)
		}
	}
}

// sweep deals with messages whose time is over.
func (b *Bus) sweep(tx *audit.Tx, due []record.Key) error {
	graves := map[string]*burial{}
	bury := func(kind byte, name, reason string, m *Message) error {
		k := string(kind) + name
		if kind == toAnswer {
			k += m.MessageID // one event each: there is no consumer to name
		}
		if graves[k] == nil {
			graves[k] = &burial{kind: kind, name: name, reason: reason}
		}
		return graves[k].add(tx, m)
	}
	for _, k := range due {
		_, there, err := dues.Get(tx, k)
		if err != nil {
			return err
		}
		if !there { // read meanwhile
			continue
		}
		_, seq, kind, name := readDue(record.Parts(k))
		if err := errors.Join(dues.Delete(tx, k), inHands.Delete(tx, ofConsumer(seq, kind, name))); err != nil {
			return err
		}
		m, err := b.messages.Glance(tx, record.Seq(seq))
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		switch kind {
		case toMailbox:
			err = b.sweepMailbox(tx, m, name, bury)
		case toSubscription:
			err = b.sweepTopic(tx, m, bury)
		case toAnswer:
			err = closes(tx, m, fate{Status: Expired, At: tx.Now()})
			if err == nil {
				err = bury(toAnswer, "", Unanswered, m)
			}
			t := b.of(tx.Tenant())
			tx.OnCommit(func() { b.answered(t, m.CorrelationID) })
		}
		if err != nil {
			return err
		}
	}
	for _, g := range graves {
		if err := g.record(tx); err != nil {
			return err
		}
	}
	return nil
}

type burier func(kind byte, name, reason string, m *Message) error

func (b *Bus) sweepMailbox(tx *audit.Tx, m *Message, recipient string, bury burier) error {
	t := b.of(tx.Tenant())
	b.mu.Lock()
	_, inHand := t.taken[slot{recipient, m.Seq}]
	b.mu.Unlock()
	if inHand { // its reader may still acknowledge it
		return putHeld(tx, m.Seq, toMailbox, recipient)
	}
	was, err := b.settle(tx, m, recipient, fate{Status: Expired, At: tx.Now()})
	if err != nil || !was {
		return err
	}
	return bury(toMailbox, recipient, string(Expired), m)
}

func (b *Bus) sweepTopic(tx *audit.Tx, m *Message, bury burier) error {
	all, err := b.durables(tx)
	if err != nil {
		return err
	}
	later := false
	for _, d := range all {
		if !d.wants(m.Topic, m.MessageType) || m.Timestamp.Before(d.rec.CreatedAt) {
			continue
		}
		b.mu.Lock()
		reader := d.open
		b.mu.Unlock()
		var done, inHand bool
		if reader != nil {
			done, inHand = reader.holds(m.Seq)
		} else {
			cursor, err := loadCursor(tx, d.rec.Name)
			if err != nil {
				return err
			}
			done = m.Seq <= cursor
		}
		later = later || inHand
		if done || inHand {
			continue
		}
		if err := bury(toSubscription, d.rec.Name, string(Expired), m); err != nil {
			return err
		}
	}
	if later {
		err = putHeld(tx, m.Seq, toSubscription, "")
	}
	return err
}

// putHeld says that a message expired in the hand of a reader, who may still
// acknowledge it: it stays, and is looked at again.
func putHeld(tx *audit.Tx, seq uint64, kind byte, name string) error {
	again := tx.Now().Add(lookAgain)
	return errors.Join(putDue(tx, again, seq, kind, name), inHands.Put(tx, ofConsumer(seq, kind, name), uint64(again.UnixMicro())))
}

// Timing of Run.
const (
	flushAfter = 20 * time.Millisecond // acknowledgements are gathered so long
	lookAgain  = 30 * time.Second      // at an expired message that a reader still has in hand
)

// Run writes what was acknowledged, makes dead letters of what expires and
// cuts old history off, until ctx ends.
func (b *Bus) Run(ctx context.Context) error {
	if err := b.loop.Run(ctx); err != nil {
		return err
	}
	return b.flushAll()
}

// tend writes what was acknowledged. Where something is due it makes dead letters
// of that, and cuts history off.
func (b *Bus) tend(ctx context.Context, tenant string, due bool) (next time.Time, err error) {
	ctx = store.IfFull(ctx, store.Refuse) // who closes a subscription must not wait behind this
	if err := b.flush(ctx, b.of(tenant)); err != nil || !due {
		return next, err
	}
	if next, err = b.expire(ctx, tenant); err != nil {
		return next, err
	}
	return next, b.Prune(ctx, tenant)
}

// flushAll is the last thing Run does.
func (b *Bus) flushAll() error {
	b.mu.Lock()
	all := slices.Collect(maps.Values(b.tenants))
	b.mu.Unlock()
	var errs []error
	for _, t := range all { // one that can't be written keeps no other from it
		errs = append(errs, b.flush(store.IfFull(context.Background(), store.Refuse), t)) // short, and what comes after Run can't do it
	}
	return errors.Join(errs...)
}
