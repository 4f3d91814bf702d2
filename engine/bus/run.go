package bus

import (
	"context"
	"errors"
	"time"

	"swarmdeck/store"
)

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
