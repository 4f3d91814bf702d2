package bus_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/store"
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
	*bus.Bus
	t      testing.TB
	path   string
	keep   int
	most   int    // unread messages of a mailbox
	who    agents // nil is everybody
	clock  *clock
	db     *store.DB
	ledger *audit.Ledger
	stop   func()
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "bus.db"), clock: &clock{}}
	r.open()
	for _, tenant := range []string{acme, other} {
		r.no(r.db.CreateTenant(t.Context(), tenant))
	}
	t.Cleanup(r.close)
	return r
}

func (r *rig) open() {
	r.t.Helper()
	sealer, err := audit.OpenSealer(r.path + ".key")
	r.no(err)
	r.db, err = store.Open(r.path, store.Options{Seal: sealer.Seal})
	r.no(err)
	r.over(r.db)
}

// over builds the services over a store.
func (r *rig) over(st store.Store) {
	if r.who == nil {
		r.who = everybody
	}
	r.ledger = audit.New(st, audit.Options{Clock: r.clock, OnChange: func(c core.Change) { r.Changed(c) }})
	r.Bus = bus.New(bus.Options{Ledger: r.ledger, Directory: r.who, Tenants: st.Tenants, Keep: r.keep, MaxUnread: r.most})
}

func (r *rig) close() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
	if r.db != nil {
		r.no(r.db.Close())
		r.db = nil
	}
}

// reopen is a restart.
func (r *rig) reopen() {
	r.t.Helper()
	r.close()
	r.open()
}

// run starts what looks after expiry, until the rig is closed.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	b := r.Bus
	go func() { done <- b.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Run: %v", err)
		}
	}
}

func (r *rig) no(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) send(s bus.Send) bus.Message {
	r.t.Helper()
	if s.Payload == nil {
		s.Payload = core.Raw(`{}`)
	}
	m, err := r.Accept(r.t.Context(), alice, s)
	r.no(err)
	return m
}

func (r *rig) publish(topic, payload string) bus.Message {
	r.t.Helper()
	return r.send(bus.Send{Topic: topic, Payload: core.Raw(payload)})
}

func (r *rig) direct(to, payload string, change ...func(*bus.Send)) bus.Message {
	r.t.Helper()
	s := bus.Send{Recipient: to, Payload: core.Raw(payload)}
	for _, c := range change {
		c(&s)
	}
	return r.send(s)
}

func (r *rig) subscribe(opt bus.SubscribeOptions) *bus.Subscription {
	r.t.Helper()
	s, err := r.Subscribe(r.t.Context(), acme, opt)
	r.no(err)
	return s
}

func (r *rig) next(s *bus.Subscription) bus.Delivery {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	d, err := s.Next(ctx)
	if err != nil {
		r.t.Fatalf("next: %v", err)
	}
	return d
}

// nothing checks that there is nothing to read.
func (r *rig) nothing(s *bus.Subscription) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 50*time.Millisecond)
	defer cancel()
	if d, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		r.t.Fatalf("got %s %s (%v), want nothing", d.Message.MessageID, d.Message.Payload, err)
	}
}

func (r *rig) read(who string, n int) []bus.Message {
	r.t.Helper()
	found, err := r.Read(r.t.Context(), alice, who, n)
	r.no(err)
	return found
}

func (r *rig) get(id string) bus.Message {
	r.t.Helper()
	m, err := r.Get(r.t.Context(), acme, id)
	r.no(err)
	return m
}

func (r *rig) figures() bus.Figures {
	r.t.Helper()
	f, err := r.Figures(r.t.Context(), acme)
	r.no(err)
	return f
}

func (r *rig) dead(f core.Filter) []bus.DeadLetter {
	r.t.Helper()
	page, err := r.Dead(r.t.Context(), acme, f)
	r.no(err)
	if page.Info.Total != len(page.Items) && page.Info.Total <= 20 {
		r.t.Errorf("%d dead letters, total %d", len(page.Items), page.Info.Total)
	}
	return page.Items
}

// await polls for state that no event announces.
func (r *rig) await(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited 10 s for: %s", what)
		}
	}
}

// events are the audit events of a type, newest first.
func (r *rig) events(kind string) []audit.Event {
	r.t.Helper()
	page, err := r.ledger.List(r.t.Context(), acme, core.Filter{Kind: kind, Size: 100})
	r.no(err)
	return page.Items
}

// whole checks what must hold after any sequence: the log verifies, the store
// equals its replay, and the counters equal a recount.
func (r *rig) whole() {
	r.t.Helper()
	ctx := context.Background()
	rep, err := r.ledger.Verify(ctx, acme, nil)
	if err != nil || !rep.OK {
		r.t.Errorf("audit verify: %+v, %v", rep, err)
	}
	deltas, err := r.ledger.Reconcile(ctx, acme, r.Auditables())
	if err != nil || len(deltas) > 0 {
		r.t.Errorf("reconcile: %+v, %v", deltas, err)
	}
	f, err := r.Figures(ctx, acme)
	r.no(err)
	boxes, err := r.Mailboxes(ctx, acme)
	r.no(err)
	var open int64
	for _, b := range boxes {
		open += int64(b.Open)
	}
	asks, err := r.Bus.List(ctx, acme, bus.Query{Filter: core.Filter{Status: "unanswered"}})
	r.no(err)
	var unsent int64
	letters := 0
	for page := 1; ; page++ {
		found, err := r.Dead(ctx, acme, core.Filter{Page: page, Size: 100})
		r.no(err)
		for _, d := range found.Items {
			letters++
			if d.ResentAs == "" {
				unsent++
			}
		}
		if !found.Info.Next {
			if letters != found.Info.Total {
				r.t.Errorf("%d dead letters, the total says %d", letters, found.Info.Total)
			}
			break
		}
	}
	all, err := r.Bus.List(ctx, acme, bus.Query{})
	r.no(err)
	topics, err := r.Topics(ctx, acme, core.Filter{})
	r.no(err)
	if f.Open != open || f.Unanswered != int64(asks.Info.Total) || f.Dead != unsent || f.Messages != int64(all.Info.Total) || f.Topics != int64(topics.Info.Total) {
		r.t.Errorf("counters %+v; recount: open %d, unanswered %d, dead %d, messages %d, topics %d", f, open, asks.Info.Total, unsent, all.Info.Total, topics.Info.Total)
	}
}

func code(err error) core.Code {
	if err == nil {
		return ""
	}
	return core.AsError(err).Code
}
