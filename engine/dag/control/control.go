// Package control brings the world to what the record says it should be
// (model 4, spec and status). An intent is a desired state: one step or several,
// each an action word with its arguments. What is then seen is an observation.
// Both are events of the record, and neither is ever changed.
//
// An intent is a run of its own, whose run_id is the intent's id:
//
//	run_started   someone wants something
//	tool_call     a step, server "controller", tool its action: the intent proper
//	tool_result   what came of that step: the observation
//	interruption  the engine died, the intent was withdrawn or refused
//	tool_call     "undo", requested by the call of the step that is taken back
//	run_finished  it is over
//
// An Effect looks, acts and takes back; drivers fill it. One goroutine works on an
// intent, and looks before it acts, each time: what it finds decides, not what it
// remembers (level-based). Before an Effect may touch anything, it is on disk that
// the step is tried, and in which epoch of the data file: only the program that has
// the file open can write, so a try of an earlier epoch is over, whatever it did.
//
// A step that does not come about is tried again with back-off, a bounded number
// of times, also when each try kills the process. Then, or when the intent is
// withdrawn, the steps that began are taken back in reverse order. A step that
// can't be taken back leaves the intent stuck: a person says what happens next.
//
// An effect happens at least once, and more than once only as far as its Probe
// and its Key can't tell that it happened: Act is given the same Key each time.
package control

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
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

	intents record.Table[Intent]
	settled core.Condition // changes when an intent is over or stuck

	slots   chan struct{}
	working sync.WaitGroup

	mu     sync.Mutex
	base   context.Context // of new work; nil while none may begin
	runs   map[place]*run
	frozen map[string]bool // tenants that Freeze was called for
}

// place names an intent among all tenants.
type place struct{ tenant, id string }

// New makes a controller. It starts nothing: call Register, then Run.
func New(opt Options) *Controller {
	if opt.Backoff == nil {
		opt.Backoff = func(try int) time.Duration { return core.Backoff(try-1, time.Second, time.Minute) }
	}
	c := &Controller{
		opt: opt, ledger: opt.Ledger, dag: opt.DAG, kinds: map[string]Kind{},
		slots: make(chan struct{}, slots), runs: map[place]*run{}, frozen: map[string]bool{},
	}
	c.intents = c.intentKind()
	c.ledger.Register(c.intents.Auditable())
	return c
}

// Register says what carries an action out. It is called before Run.
func (c *Controller) Register(action string, k Kind) error {
	if err := checkAction(action); err != nil {
		return err
	}
	k.Timeout, k.Attempts = cmp.Or(k.Timeout, defaultTimeout), cmp.Or(k.Attempts, defaultAttempts)
	if _, twice := c.kinds[action]; twice {
		return core.Errorf(core.Internal, "action %s is registered twice", action)
	}
	c.kinds[action] = k
	return nil
}

// Actions lists the action words that are carried out here.
func (c *Controller) Actions() []string { return slices.Sorted(maps.Keys(c.kinds)) }

// local is an intent's id as it is kept; one of another tenant is refused and audited.
func (c *Controller) local(ctx context.Context, by core.Caller, id string) (string, error) {
	seq, err := c.ledger.LocalSeq(ctx, by, core.IntentPrefix, id)
	return core.NewID(core.IntentPrefix, by.Tenant, seq), err
}

// maxWhy bounds a reason, in bytes: texts of effects come from outside.
const maxWhy = 1000
