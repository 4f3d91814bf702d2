// Package bus carries messages between agents and components (model 3,
// Message): topics with subscribers, and a mailbox for each recipient.
//
// What it promises: an accepted message is on disk. Delivery is at least once:
// a delivery that was not acknowledged before its reader went away, or within
// the last moments before a crash, comes again. A topic's messages come in the
// order in which they were accepted; a mailbox gives the highest priority
// first and keeps the order of acceptance within one. Readers pull, each at
// its own pace, so a slow one delays nobody and only its own lag grows.
//
// What can be dropped, and how it is seen: a direct message that nobody read
// within its ttl, a message that a durable subscription did not come to within
// its ttl, a request without an answer, and of a broadcast what a full mailbox has
// no room for become dead letters with their reason. A subscription that is not durable misses what
// expires before it comes to it, and counts that. History is kept for the
// newest messages only; what still can be delivered is never cut off.
//
// Topics that begin with "sys." show the engine's audit log as messages, each
// under "sys." and its event type. They are a view: nothing is stored twice,
// only a pattern that names sys sees them, and nobody publishes there.
package bus

import (
	"context"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

// Directory knows who can send and receive besides the engine's own
// components. Its methods are called inside transactions: they must be quick
// and hold no lock under which the ledger is called.
type Directory interface {
	Known(tenant, id string) bool
	// All lists who a broadcast goes to.
	All(tenant string) []string
}

// foreigners is a Directory that can tell a name of another tenant from one
// that nobody has: the former is a tenant violation.
type foreigners interface {
	Elsewhere(tenant, id string) bool
}

// The parties that always exist.
const (
	System     = "system"     // the engine and its operators; sends and receives
	Controller = "controller" // receives; System answers for it
	Broadcast  = "broadcast"  // stands for everybody in the directory but the sender
)

// Components are the parties that always exist: nobody in a Directory may have
// their names.
func Components() []string { return []string{System, Controller, Broadcast} }

// Options of New.
type Options struct {
	Ledger    *audit.Ledger
	Directory Directory                               // nil: nobody but the components
	Tenants   func(context.Context) ([]string, error) // whose messages Run looks after
	// Keep is how many messages of a tenant stay as history at least; 0 means
	// 100,000. Some 600 bytes each beside the payload.
	Keep int
	// Limit is what a tenant's retention says of messages, in place of Keep; the
	// zero value, and nil, is nothing.
	Limit func(tenant string) record.Limit
	// MaxUnread is how many unread messages a mailbox holds; 0 means 10,000.
	// One more is refused: its sender learns, and nothing is lost in silence.
	MaxUnread int
	Health    *health.Troubles
	Record    Recorder // nil: nobody listens
}

// Recorder is told of each message, in the transaction that accepts it.
type Recorder interface {
	Sent(tx *audit.Tx, m *Message) error
}

// Bus is the message bus of every tenant. Its methods may be called from any
// goroutine.
//
// Lock order: Subscription.pull, tenant.flushing, Subscription.mu, Bus.mu,
// feed.mu. Only the first two are held while the ledger is called.
type Bus struct {
	opt    Options
	ledger *audit.Ledger
	loop   *loop.Loop

	messages record.Table[Message]
	topics   record.Table[Topic]
	subs     record.Table[subscription]

	mu      sync.Mutex
	tenants map[string]*tenant
}

// New makes a bus. It reads nothing and starts nothing.
func New(opt Options) *Bus {
	if opt.Keep <= 0 {
		opt.Keep = 100_000
	}
	if opt.MaxUnread <= 0 {
		opt.MaxUnread = 10_000
	}
	if opt.Directory == nil {
		opt.Directory = nobody{}
	}
	b := &Bus{opt: opt, ledger: opt.Ledger, tenants: map[string]*tenant{}}
	b.loop = loop.New(loop.Options{
		Component: "bus", Health: opt.Health, Clock: opt.Ledger.Clock(), Tenants: opt.Tenants, Pass: b.tend, Gather: flushAfter,
	})
	// How far a reader has come: a cursor that was changed has it read again, or
	// not at all, what the log has all the same.
	b.ledger.Declare(audit.Volatile, string(cursors))
	b.messages, b.topics, b.subs = b.messageKind(), b.topicKind(), b.subscriptionKind()
	b.ledger.Register(b.messages.Auditable(), b.topics.Auditable(), b.subs.Auditable(), unsettled{})
	b.messages.Hold(countOpen, countAsks, countDead)
	b.topics.Hold()
	b.subs.Hold()
	return b
}

type nobody struct{}

func (nobody) Known(string, string) bool { return false }
func (nobody) All(string) []string       { return nil }

// tenant is what the bus keeps in memory of one tenant. All of it can be lost:
// the store has what matters.
type tenant struct {
	name     string
	feed     feed
	flushing sync.Mutex // held by flush, over its transaction

	// Guarded by Bus.mu.
	subs    map[*Subscription]struct{}
	durable map[string]*durable        // by name; nil until read, see durables
	taken   map[slot]*Subscription     // delivered and neither acknowledged nor given back
	settled uint64                     // grows whenever a mailbox lost a message
	waiting map[string][]chan struct{} // by correlation id: who waits for an answer
	acks    []acked                    // mailbox deliveries to settle with the next flush
	dirty   map[*Subscription]struct{} // whose cursor moved
}

// slot is one message in one mailbox.
type slot struct {
	recipient string
	seq       uint64
}

// of returns a tenant's state.
func (b *Bus) of(name string) *tenant {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tenants[name]
	if t == nil {
		t = &tenant{
			name: name, subs: map[*Subscription]struct{}{}, taken: map[slot]*Subscription{},
			waiting: map[string][]chan struct{}{}, dirty: map[*Subscription]struct{}{},
		}
		b.tenants[name] = t
	}
	return t
}

// Changed tells the bus of a change in the engine, so that readers of the
// engine's events wake up. It never blocks.
func (b *Bus) Changed(c core.Change) {
	if c.Kind != "event" {
		return
	}
	b.mu.Lock()
	t := b.tenants[c.Tenant]
	b.mu.Unlock()
	if t != nil {
		t.feed.event()
	}
}

// change is a transaction of the bus's own. A refusal says by itself what it
// is about; any other error is wrapped with what was attempted.
func (b *Bus) change(ctx context.Context, by core.Caller, what string, fn func(*audit.Tx) error) error {
	return audit.Explain(what, b.ledger.Update(ctx, by, fn))
}

// foreign audits err when it says that something belongs to another tenant.
func (b *Bus) foreign(ctx context.Context, by core.Caller, named string, err error) error {
	return b.ledger.Foreign(ctx, by, "message", named, err)
}
