package bus_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/expect"
)

const (
	acme  = "t_acme"
	other = "t_other"
)

var alice = core.Caller{Tenant: acme, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// agents is a directory of fixed names.
type agents map[string][]string

func (a agents) Known(tenant, id string) bool { return slices.Contains(a[tenant], id) }
func (a agents) All(tenant string) []string   { return a[tenant] }
func (a agents) Elsewhere(tenant, id string) bool {
	for t := range a {
		if t != tenant && a.Known(t, id) {
			return true
		}
	}
	return false
}

var everybody = agents{acme: {"ann", "bob", "cid"}, other: {"zoe"}}

// clock is moved by the test. Until then it is the real one.
type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return core.SystemClock{}.Now().Add(c.off)
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

// rig is a bus over a store of its own.
type rig struct {
	*enginetest.World
	*bus.Bus
	keep  int
	most  int    // unread messages of a mailbox
	who   agents // nil is everybody
	clock *clock
}

func newRig(t testing.TB) *rig {
	r := &rig{clock: &clock{}}
	enginetest.New(t, r.options())
	return r
}

func (r *rig) options() enginetest.Options {
	return enginetest.Options{Clock: r.clock, Changed: func(c core.Change) { r.Changed(c) }, Build: func(w *enginetest.World) {
		if r.who == nil {
			r.who = everybody
		}
		r.World = w
		r.Bus = bus.New(bus.Options{Ledger: w.Ledger, Directory: r.who, Tenants: w.Store.Tenants, Keep: r.keep, MaxUnread: r.most})
	}}
}

// run starts what looks after expiry, until the rig is closed.
func (r *rig) run() { r.Start(r.Run) }

func (r *rig) send(s bus.Send) bus.Message {
	r.T.Helper()
	if s.Payload == nil {
		s.Payload = core.Raw(`{}`)
	}
	return expect.Of(r.Accept(r.T.Context(), alice, s))(r.T)
}

func (r *rig) publish(topic, payload string) bus.Message {
	r.T.Helper()
	return r.send(bus.Send{Topic: topic, Payload: core.Raw(payload)})
}

func (r *rig) direct(to, payload string, change ...func(*bus.Send)) bus.Message {
	r.T.Helper()
	s := bus.Send{Recipient: to, Payload: core.Raw(payload)}
	for _, c := range change {
		c(&s)
	}
	return r.send(s)
}

func (r *rig) subscribe(opt bus.SubscribeOptions) *bus.Subscription {
	r.T.Helper()
	return expect.Of(r.Subscribe(r.T.Context(), acme, opt))(r.T)
}

func (r *rig) next(s *bus.Subscription) bus.Delivery {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), 2*time.Minute)
	defer cancel()
	d, err := s.Next(ctx)
	expect.No(r.T, err, "next")
	return d
}

// nothing checks that there is nothing to read.
func (r *rig) nothing(s *bus.Subscription) {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), 50*time.Millisecond)
	defer cancel()
	d, err := s.Next(ctx)
	expect.Must(r.T, errors.Is(err, context.DeadlineExceeded), "got %s %s (%v), want nothing", d.Message.MessageID, d.Message.Payload, err)
}

func (r *rig) read(who string, n int) []bus.Message {
	r.T.Helper()
	return expect.Of(r.Read(r.T.Context(), alice, who, n))(r.T)
}

func (r *rig) get(id string) bus.Message {
	r.T.Helper()
	return expect.Of(r.Get(r.T.Context(), acme, id))(r.T)
}

func (r *rig) figures() bus.Figures {
	r.T.Helper()
	return expect.Of(r.Figures(r.T.Context(), acme))(r.T)
}

// dead are the dead letters, newest first, with what became of them.
func (r *rig) dead() (all []bus.Message) {
	r.T.Helper()
	page := expect.Of(r.Bus.List(r.T.Context(), acme, bus.Query{Filter: core.Filter{Status: "dead", Size: 100}}))(r.T)
	expect.Is(r.T, page.Info.Total, len(page.Items), "dead letters in all")
	for _, m := range page.Items {
		all = append(all, r.get(m.MessageID))
	}
	return all
}

// await polls for state that no event announces.
func (r *rig) await(what string, ok func() bool) {
	r.T.Helper()
	expect.Await(r.T, what, ok)
}

// events are the audit events of a type, newest first.
func (r *rig) events(kind string) []audit.Event {
	r.T.Helper()
	page := expect.Of(r.Ledger.List(r.T.Context(), acme, core.Filter{Kind: kind, Size: 100}))(r.T)
	return page.Items
}

// whole checks what must hold after any sequence: the log verifies, the store
// equals its replay, and the counters equal a recount.
func (r *rig) whole() {
	r.T.Helper()
	ctx := context.Background()
	rep, err := r.Ledger.Verify(ctx, acme, nil)
	expect.True(r.T, err == nil && rep.OK, "audit verify: %+v, %v", rep, err)
	deltas, err := r.Ledger.Reconcile(ctx, acme)
	expect.True(r.T, err == nil && len(deltas) == 0, "reconcile: %+v, %v", deltas, err)
	f := expect.Of(r.Figures(ctx, acme))(r.T)
	boxes := expect.Of(r.Mailboxes(ctx, acme))(r.T)
	var open int64
	for _, b := range boxes {
		open += int64(b.Open)
	}
	asks := expect.Of(r.Bus.List(ctx, acme, bus.Query{Filter: core.Filter{Status: "unanswered"}}))(r.T)
	dead := expect.Of(r.Bus.List(ctx, acme, bus.Query{Filter: core.Filter{Status: "dead"}}))(r.T)
	all := expect.Of(r.Bus.List(ctx, acme, bus.Query{}))(r.T)
	topics := expect.Of(r.Topics(ctx, acme, core.Filter{}))(r.T)
	if f.Open != open || f.Unanswered != int64(asks.Info.Total) || f.Dead != int64(dead.Info.Total) || f.Messages != int64(all.Info.Total) || f.Topics != int64(topics.Info.Total) {
		r.T.Errorf("counters %+v; recount: open %d, unanswered %d, dead %d, messages %d, topics %d", f, open, asks.Info.Total, dead.Info.Total, all.Info.Total, topics.Info.Total)
	}
}

func code(err error) core.Code {
	if err == nil {
		return ""
	}
	return core.AsError(err).Code
}
