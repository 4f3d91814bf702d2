package egress_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const acme = "t_acme"

var (
	alice = core.Caller{Tenant: acme, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	ada   = egress.Origin{Tenant: acme, Agent: "ada", Role: "coder", Run: "r1", PID: 7, Process: "curl"}
)

// clock stands until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is an engine over a data file.
type world struct {
	*engine.Engine
	t     testing.TB
	clock *clock
	bell  <-chan struct{}
}

func open(t testing.TB, path string, patience time.Duration) *world {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "data.db")
	}
	db, err := store.Open(path, store.Options{})
	expect.No(t, err)
	w := &world{t: t, clock: &clock{now: time.Date(2026, 5, 1, 14, 0, 0, 0, time.UTC)}}
	w.Engine, err = engine.Open(context.Background(), engine.Options{Store: db, Clock: w.clock, EgressPatience: patience, Runners: map[string]swarm.Runner{judge.KindExec: idle{}}})
	expect.No(t, err)
	t.Cleanup(func() {
		_ = w.Close()
		_ = db.Close()
	})
	if all, err := w.Swarm.Tenants(t.Context()); err != nil || len(all) == 0 {
		expect.Of(w.Swarm.CreateTenant(t.Context(), alice, acme))(t)
	}
	w.bell = w.Watch(context.Background())
	return w
}

func (w *world) no(err error) {
	w.t.Helper()
	expect.No(w.t, err)
}

func (w *world) put(effect egress.Effect, where string, change ...func(*egress.Rule)) egress.Rule {
	w.t.Helper()
	r, err := egress.NewRule(effect, where)
	w.no(err)
	for _, c := range change {
		c(&r)
	}
	r, _, err = w.Egress.Put(context.Background(), alice, r, 0)
	w.no(err)
	return r
}

func target(t testing.TB, host string, port int) egress.Target {
	t.Helper()
	return expect.Of(egress.NewTarget(host, port))(t)
}

// asks begins a connection that waits for an answer.
func (w *world) asks(from egress.Origin, host string, port int) <-chan egress.Verdict {
	w.t.Helper()
	to := target(w.t, host, port)
	return expect.Later(func() egress.Verdict { return w.Egress.Decide(context.Background(), from, whole(to)) })
}

// until waits for what the engine's bell may be about.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	for late := time.After(2 * time.Minute); !is(); {
		select {
		case <-w.bell:
		case <-late:
			w.t.Fatalf("it is not: %s", what)
		}
	}
}

// open waits until so many questions are open.
func (w *world) open(n int) (all []judge.Approval) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d questions are open", n), func() (is bool) {
		all = expect.Of(w.Judge.Open(context.Background(), acme))(w.t)
		return len(all) == n
	})
	return all
}

// names waits until one question names so many hosts and nothing else is asked.
func (w *world) names(n int) (a judge.Approval) {
	w.t.Helper()
	w.until(fmt.Sprintf("one question names %d hosts", n), func() bool {
		all := expect.Of(w.Judge.Open(context.Background(), acme))(w.t)
		if len(all) == 1 {
			a = all[0]
		}
		return len(all) == 1 && len(a.Subject.Hosts) == n
	})
	return a
}

func (w *world) answer(id string, a judge.Answer) {
	w.t.Helper()
	expect.Of(w.Judge.Answer(context.Background(), alice, id, a))(w.t)
}

func (w *world) log(kind string) []audit.Event {
	w.t.Helper()
	page := expect.Of(w.Audit.List(context.Background(), acme, core.Filter{Kind: kind, Size: core.MaxPageSize}))(w.t)
	return page.Items
}

// whole is a connection in which anything may be said.
func whole(to egress.Target) egress.Request { return egress.Request{Target: to} }

// used tells of a connection that has been.
func (w *world) used(to egress.Target, sent, received int64) {
	w.Egress.Opened(ada, to, func() (int64, int64) { return sent, received })()
}
