package pane

import (
	"context"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

// BusWorld is what the cockpit reads of the message bus.
type BusWorld interface {
	BusMessage(ctx context.Context, tenant, id string) (bus.Message, error)
	BusMessages(ctx context.Context, tenant string, q bus.Query) (core.Page[bus.Message], error)
	// BusRecent are the newest n messages that a pattern selects ("" every
	// one), oldest first, and the seq from which BusSince goes on.
	BusRecent(ctx context.Context, tenant, pattern string, n int) ([]bus.Message, uint64, error)
	BusSince(ctx context.Context, tenant, pattern string, seq uint64, n int) ([]bus.Message, uint64, error)
	DeadLetters(ctx context.Context, tenant string, f core.Filter) (core.Page[bus.DeadLetter], error)
	Subscriptions(ctx context.Context, tenant string) ([]bus.SubscriptionInfo, error)
	Mailboxes(ctx context.Context, tenant string) ([]bus.Mailbox, error)
}

func (w world) BusMessage(ctx context.Context, tenant, id string) (bus.Message, error) {
	return w.Bus.Get(ctx, tenant, id)
}

func (w world) BusMessages(ctx context.Context, tenant string, q bus.Query) (core.Page[bus.Message], error) {
	return w.Bus.List(ctx, tenant, q)
}

func (w world) BusRecent(ctx context.Context, tenant, pattern string, n int) ([]bus.Message, uint64, error) {
	return w.Bus.Recent(ctx, tenant, pattern, n)
}

func (w world) BusSince(ctx context.Context, tenant, pattern string, seq uint64, n int) ([]bus.Message, uint64, error) {
	return w.Bus.Since(ctx, tenant, pattern, seq, n)
}

func (w world) DeadLetters(ctx context.Context, tenant string, f core.Filter) (core.Page[bus.DeadLetter], error) {
	return w.Bus.Dead(ctx, tenant, f)
}

func (w world) Subscriptions(ctx context.Context, tenant string) ([]bus.SubscriptionInfo, error) {
	return w.Bus.Subscriptions(ctx, tenant)
}

func (w world) Mailboxes(ctx context.Context, tenant string) ([]bus.Mailbox, error) {
	return w.Bus.Mailboxes(ctx, tenant)
}
