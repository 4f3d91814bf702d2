package builtin

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

// Post is Messages over the engine's bus. The builtins are made before the
// engine that has the bus: until Open, nothing can be waited for.
type Post struct{ bus atomic.Pointer[bus.Bus] }

var _ Messages = (*Post)(nil)

// Open connects it.
func (p *Post) Open(b *bus.Bus) { p.bus.Store(b) }

// Wait implements Messages. Of a topic, only what is published from now on
// counts; of a mailbox, also what lies there unread. The message counts as
// read once it is returned.
func (p *Post) Wait(ctx context.Context, tenant, agentID, topic string) (core.Raw, error) {
	b := p.bus.Load()
	if b == nil {
		return nil, core.Errorf(core.Unavailable, "the message bus is not open")
	}
	opt := bus.SubscribeOptions{Pattern: topic, By: agentID}
	if topic == "" {
		opt.Mailbox = agentID
	}
	s, err := b.Subscribe(ctx, tenant, opt)
	if err != nil {
		return nil, err
	}
	d, err := s.Next(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	d.Ack()
	if err := s.Close(); err != nil { // it will come again
		return nil, fmt.Errorf("take message %s: %w", d.Message.MessageID, err)
	}
	return core.MustEncode(d.Message), nil
}
