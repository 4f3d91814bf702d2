package control

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	DAG     *dag.DAG
	Judge   *judge.Judge                            // nil refuses destructive intents of agents
	Tenants func(context.Context) ([]string, error) // whose intents Run looks at from its start
	// Halted reports a tenant whose emergency stop is on: nothing of it begins.
	// nil is never.
	Halted func(tenant string) bool
	Slots  int // intents worked on at once; 0 means 8
	// Owner names this controller in leases; "" makes a name up. Two that share
	// an opening of the data file must differ.
	Owner string
	// Lease is how long a holder is believed to live without a word; 0 means
	// 15 s. It says so three times in that time.
	Lease time.Duration
	// Backoff is the pause after a try, from 1; nil doubles from 1 s to 1 min.
	Backoff func(try int) time.Duration
	Health  *health.Troubles
}

// Controller carries intents out. Its methods may be called from any goroutine.
type Controller struct {
	opt    Options
	ledger *audit.Ledger
	dag    *dag.DAG
	kinds  map[string]Kind // not changed after Run begins
	loop   *loop.Loop

	intents record.Table[Intent]

	working sync.WaitGroup
	begin   func(*held, context.Context) // works on what was leased

	mu      sync.Mutex
	holding map[place]*held           // what this controller works on
	frozen  map[string]bool           // tenants that Freeze was called for
	waiters map[place][]chan struct{} // closed when the intent is settled
}

// place names an intent among all tenants.
type place struct{ tenant, id string }

// New makes a controller. It starts nothing: call Register, then Run.
func New(opt Options) *Controller {
	if opt.Slots == 0 {
		opt.Slots = 8
	}
	if opt.Lease == 0 {
		opt.Lease = 15 * time.Second
	}
	if opt.Owner == "" {
		opt.Owner = "controller-" + strings.ToLower(rand.Text()[:8])
	}
	if opt.Backoff == nil {
		opt.Backoff = func(try int) time.Duration { return core.Backoff(try-1, time.Second, time.Minute) }
	}
	c := &Controller{opt: opt, ledger: opt.Ledger, dag: opt.DAG, kinds: map[string]Kind{}, holding: map[place]*held{}, frozen: map[string]bool{}, waiters: map[place][]chan struct{}{}}
	c.loop = loop.New(loop.Options{Component: "intents", Health: opt.Health, Clock: opt.Ledger.Clock(), Pass: c.tend})
	c.begin = func(h *held, ctx context.Context) { c.working.Go(func() { c.carry(ctx, h) }) }
	c.intents = c.intentKind()
	c.ledger.Register(c.intents.Auditable())
	return c
}

// Register says what carries an action out. It is called before Run.
func (c *Controller) Register(action string, k Kind) error {
	if err := checkAction("action", action); err != nil {
		return err
	}
	switch {
	case k.Effect == nil:
		return core.Errorf(core.Internal, "action %s: nothing carries it out", action)
	case k.Attempts < 0 || k.Attempts > maxAttempts:
		return core.Invalid("attempts", k.Attempts, fmt.Sprintf("1-%d, or 0 for %d", maxAttempts, defaultAttempts))
	}
	if k.Timeout == 0 {
		k.Timeout = defaultTimeout
	}
	if k.Attempts == 0 {
		k.Attempts = defaultAttempts
	}
	if _, twice := c.kinds[action]; twice {
		return core.Errorf(core.Internal, "action %s is registered twice", action)
	}
	c.kinds[action] = k
	return nil
}

// Actions lists the action words that are carried out here.
func (c *Controller) Actions() []string { return slices.Sorted(maps.Keys(c.kinds)) }

// local reads an intent's id; one of another tenant is refused and audited.
func (c *Controller) local(ctx context.Context, by core.Caller, id string) (uint64, error) {
	seq, err := core.LocalSeq(core.IntentPrefix, by.Tenant, id)
	if err != nil && core.AsError(err).Code == core.Denied {
		return 0, c.ledger.Refuse(ctx, by, audit.Entry{Type: "tenant.violation", Subject: "tenant", ID: by.Tenant}, err)
	}
	return seq, err
}

// maxWhy bounds a reason, in bytes: texts of effects come from outside.
const maxWhy = 1000
