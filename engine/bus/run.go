package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/store"
)

// Timing of Run.
const (
	flushAfter = 20 * time.Millisecond // acknowledgements are gathered so long
	lookAgain  = 30 * time.Second      // at an expired message that a reader still has in hand
	retryAfter = time.Minute           // when a tenant could not be tended
	fullAfter  = time.Second           // while the disk is full
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
	ctx = store.IfFull(ctx, store.Refuse) // who closes a subscription must not wait behind this
	err := health.Caught(func() error {
		err := b.flush(ctx, b.of(tenant))
		if err == nil && sweep {
			err = b.endExpired(ctx, tenant)
		}
		return err
	})
	if err == nil || errors.Is(err, store.ErrNoTenant) {
		b.opt.Health.Clear(tenant, "bus", "")
		return nil
	}
	if ctx.Err() != nil || health.WholeEngine(err) {
		return err
	}
	if errors.Is(err, store.ErrFull) {
		b.watch.due(tenant, b.ledger.Clock().Now().Add(fullAfter))
		return nil
	}
	b.opt.Health.Report(tenant, "bus", "", err)
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
	return b.Prune(ctx, tenant)
}

// flushAll is the last thing Run does.
func (b *Bus) flushAll() error {
	b.mu.Lock()
	var all []*tenant
	for _, t := range b.tenants {
		all = append(all, t)
	}
	b.mu.Unlock()
	var errs []error
	for _, t := range all { // one that can't be written keeps no other from it
		errs = append(errs, b.flush(store.IfFull(context.Background(), store.Refuse), t)) // short, and what comes after Run can't do it
	}
	return errors.Join(errs...)
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
	wait := time.Minute // timers stand while the machine sleeps
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
