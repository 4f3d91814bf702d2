package builtin

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
)

// Post is Messages over the engine's bus, and where refusals are audited. The
// builtins are made before the engine that has the bus: until Open, nothing can
// be waited for.
type Post struct {
	bus    atomic.Pointer[bus.Bus]
	ledger atomic.Pointer[audit.Ledger]
}

var _ Messages = (*Post)(nil)

// Open connects it.
func (p *Post) Open(b *bus.Bus, l *audit.Ledger) {
	p.bus.Store(b)
	p.ledger.Store(l)
}

// Refused audits that a call reached for one of the engine's own files. It
// fails all the same, also where that can't be written down.
func (p *Post) Refused(ctx context.Context, call skill.Call, err error) {
	if l := p.ledger.Load(); l != nil {
		by := core.Caller{Tenant: call.Tenant, Name: call.AgentID, Kind: core.Agent, Door: core.DoorEngine}
		_ = l.Refuse(ctx, by, audit.Entry{Type: "file.refused", Subject: "task", ID: call.TaskID}, err)
	}
}

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
