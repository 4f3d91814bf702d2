package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Timing of Run.
const (
	flushAfter = 20 * time.Millisecond // acknowledgements are gathered so long
	lookAgain  = 30 * time.Second      // at an expired message that a reader still has in hand
	retryAfter = time.Minute           // when a tenant could not be tended
)

// Run writes what was acknowledged, makes dead letters of what expires and
// cuts old history off, until ctx ends.
func (b *Bus) Run(ctx context.Context) error {
	if b.opt.Tenants != nil {
		all, err := b.opt.Tenants(ctx)
		if err != nil {
			return fmt.Errorf("list the tenants to watch: %w", err)
		}
		for _, t := range all {
			b.watch.due(t, time.Time{})
		}
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		flush, wait := b.watch.take(b.ledger.Clock().Now())
		for tenant, sweep := range flush {
			if err := b.tend(ctx, tenant, sweep); err != nil && ctx.Err() == nil {
				return fmt.Errorf("tend the messages of %s: %w", tenant, err)
			}
		}
		if len(flush) > 0 {
			wait = flushAfter // gathers; what is due later is looked at then
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return b.flushAll()
		case <-b.watch.bell:
			// The first of many: the others come while this one waits.
			select {
			case <-ctx.Done():
			case <-time.After(flushAfter):
			}
		case <-timer.C:
		}
	}
}

// tend does what a tenant needs now. Trouble with one tenant's records must
// not keep the others from being looked after: it is audited, and tried again
// later.
func (b *Bus) tend(ctx context.Context, tenant string, sweep bool) error {
	err := b.flush(ctx, b.of(tenant))
	if err == nil && sweep {
		err = b.endExpired(ctx, tenant)
	}
	if err == nil || errors.Is(err, store.ErrNoTenant) {
		return nil
	}
	for _, fatal := range []error{store.ErrClosed, store.ErrUnusable, store.ErrReadOnly} {
		if ctx.Err() != nil || errors.Is(err, fatal) {
			return err
		}
	}
	b.watch.due(tenant, b.ledger.Clock().Now().Add(retryAfter))
	// The cause comes back when it can't be audited either; the next try shows it.
	_ = b.ledger.Refuse(ctx, core.Self(tenant, "bus"), audit.Entry{Type: "message.trouble", Subject: "messages", ID: tenant}, err)
	return nil
}

// endExpired makes dead letters of what is due, and cuts history off.
func (b *Bus) endExpired(ctx context.Context, tenant string) error {
	next, err := b.expire(ctx, tenant)
	if err != nil {
		return err
	}
	if !next.IsZero() {
		b.watch.due(tenant, next)
	}
	return b.prune(ctx, tenant)
}

// flushAll is the last thing Run does.
func (b *Bus) flushAll() error {
	b.mu.Lock()
	var all []*tenant
	for _, t := range b.tenants {
		all = append(all, t)
	}
	b.mu.Unlock()
	for _, t := range all {
		if err := b.flush(context.Background(), t); err != nil { // short, and what comes after Run can't do it
			return err
		}
	}
	return nil
}

// watch tells Run which tenants to look at, and when.
type watch struct {
	bell chan struct{}

	mu    sync.Mutex
	acks  map[string]bool
	dueAt map[string]time.Time // when the next message of a tenant expires
}

func (w *watch) init() {
	w.bell, w.acks, w.dueAt = make(chan struct{}, 1), map[string]bool{}, map[string]time.Time{}
}

// flush asks for what was acknowledged to be written.
func (w *watch) flush(tenant string) {
	w.mu.Lock()
	fresh := !w.acks[tenant]
	w.acks[tenant] = true
	w.mu.Unlock()
	if fresh {
		ring(w.bell)
	}
}

// due says that something of a tenant expires at a time.
func (w *watch) due(tenant string, at time.Time) {
	w.mu.Lock()
	known, ok := w.dueAt[tenant]
	sooner := !ok || at.Before(known)
	if sooner {
		w.dueAt[tenant] = at
	}
	w.mu.Unlock()
	if sooner {
		ring(w.bell)
	}
}

// take returns the tenants to tend, true for those where something is due, and
// how long to wait when there is none.
func (w *watch) take(now time.Time) (map[string]bool, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	look := map[string]bool{}
	for tenant := range w.acks {
		look[tenant] = false
	}
	clear(w.acks)
	wait := time.Hour
	for tenant, at := range w.dueAt {
		if left := at.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		look[tenant] = true
		delete(w.dueAt, tenant)
	}
	return look, max(wait, time.Millisecond)
}

// sweepSlice is how many expired messages one transaction deals with.
const sweepSlice = 128

// expire makes dead letters of what has expired and returns when to look
// again; zero when nothing is left.
func (b *Bus) expire(ctx context.Context, tenant string) (time.Time, error) {
	for {
		var next time.Time
		var due [][]byte
		err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			return tx.Scan(bDue, nil, nil, false, func(k, _ []byte) bool {
				at, _, _, _ := readDue(k)
				if at.After(tx.Now()) {
					next = at
					return false
				}
				due = append(due, append([]byte(nil), k...))
				return len(due) < sweepSlice
			})
		})
		if err != nil || len(due) == 0 {
			return next, err
		}
		// Append: where readers were faster nothing is left to tell of.
		err = b.ledger.Append(ctx, core.Self(tenant, "bus"), func(tx *audit.Tx) error { return b.sweep(tx, due) })
		if err != nil {
			return next, explain("end expired messages", err)
		}
	}
}

// sweep deals with messages whose time is over.
func (b *Bus) sweep(tx *audit.Tx, due [][]byte) error {
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
		there, err := tx.Get(bDue, k)
		if err != nil {
			return err
		}
		if there == nil { // read meanwhile
			continue
		}
		if err := tx.Delete(bDue, k); err != nil {
			return err
		}
		_, seq, kind, name := readDue(k)
		m, err := getHead(tx, seq)
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
			err = closes(tx, m, fate{Status: Expired, At: tx.Now(), Reason: ReasonUnanswered})
			if err == nil {
				err = bury(toAnswer, "", ReasonUnanswered, m)
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
		again := tx.Now().Add(lookAgain)
		if err := putDue(tx, again, m.Seq, toMailbox, recipient); err != nil {
			return err
		}
		return tx.Put(bBox, boxKey(recipient, m.Priority, m.Seq), dueValue(again))
	}
	was, err := b.settle(tx, m, recipient, fate{Status: Expired, At: tx.Now()})
	if err != nil || !was {
		return err
	}
	return bury(toMailbox, recipient, ReasonExpired, m)
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
			cursor, err := loadCursor(tx, d.name)
			if err != nil {
				return err
			}
			done = m.Seq <= cursor
		}
		later = later || inHand
		if done || inHand {
			continue
		}
		if err := bury(toSubscription, d.name, ReasonExpired, m); err != nil {
			return err
		}
	}
	if later {
		return putDue(tx, tx.Now().Add(lookAgain), m.Seq, toSubscription, "")
	}
	return nil
}
