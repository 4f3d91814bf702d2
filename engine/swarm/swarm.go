// Package swarm runs the tasks of a task.Table through runners that drivers
// provide: it dispatches, claims, leases, tends, settles and retries them. What
// they wait for is kept by the packages queue, session, budget and estop, which
// know nothing of tasks but what they ask of it.
//
// Everything that matters is in the store. What is held in memory (leases,
// running work, pause flags) is rebuilt from it by New, and is changed only
// by commit hooks, so it never runs ahead of the disk.
//
// Lock order: no method calls the ledger while it holds Swarm.mu; commit
// hooks take Swarm.mu on the store's writer and must stay short.
package swarm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/place"
	"swarmdeck/engine/queue"
	"swarmdeck/engine/record"
	"swarmdeck/engine/session"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// Options of New.
type Options struct {
	Store  store.Store
	Ledger *audit.Ledger
	Judge  *judge.Judge
	Tasks  *task.Table
	Slots  int         // tasks without an agent that run at once, of all tenants without Slots of their own; 0 means 8
	Spill  string      // directory for output past the inline limit
	Place  place.Place // where that lies
	// Deaths is how many engines may die one after the other under work that
	// resumes and gets no further, before a death costs it an attempt: it may be
	// what kills them. 0 means 20.
	Deaths int
	// Input is a task's input as it is recorded, made of the one that is given
	// and valid; nil records what is given.
	Input func(ctx context.Context, by core.Caller, kind string, input core.Raw) (core.Raw, error)
	// Beyond is the tree of an agent, and why what it does in a directory can be felt beyond
	// that; nil knows of no trees.
	Beyond func(tenant, agent, dir string) (tree, why string)
	Health *health.Troubles
	Agents budget.Agents // who may have a budget; nil is everybody
	Record Recorder      // nil: nobody listens
}

// Swarm runs the tenants' tasks. Make one with New, add the runners, then Recover and Run.
//
// It is six layers, each of which knows those below it alone; one lock guards the memory
// of all.
type Swarm struct {
	*ending
	tended map[ref]chan struct{}
}

// shared is what all layers have: the services beside the queue, and who runs what.
type shared struct {
	EStops   *estop.Stops
	Sessions *session.Sessions
	Budgets  *budget.Budgets

	store  store.Store
	ledger *audit.Ledger
	judge  *judge.Judge
	tasks  *task.Table
	queue  *queue.Queue
	opt    Options

	resting sync.Map // tenants of which nothing is started

	wake   chan struct{} // one slot: something may be claimable, due or to freeze
	born   time.Time     // the zero of uptime
	room   store.Room
	slept  atomic.Int64 // how long this process stood still, in ns
	agents atomic.Bool  // agents changed: an emergency stop must hold for them too

	mu      sync.Mutex
	runners map[string]Runner
}

// damage keeps apart what can't be acted on.
type damage struct {
	*shared
	quarantined map[string]map[uint64]bool // queued tasks that can't be acted on, by tenant: all of them
}

// leasing is who works on what, and until when it is believed.
type leasing struct {
	*damage
	guards  struct{ schedule, leases *health.Guard }
	leases  map[ref]*lease
	granted map[string]uint64 // number of the newest lease that is committed, by tenant
	pulses  map[ref]*pulse    // by tenant and worker; not the engine's own
	planned time.Duration     // uptime of the next look; later than that, we slept
}

// slotting is how many run at once, and why one waits.
type slotting struct {
	*leasing
	slotted record.Table[Slots]
	slots   record.Mirror[Slots]
	handed  map[string]int // slots that go from one task to the next just now, by pool
}

// ending is how tasks end, and what that lets go on.
type ending struct {
	*slotting
	// tasks that are over, whose waiting ones go on from a number on, by tenant
	releasing map[string]map[uint64]uint64
	resumed   []task.Task // go on where an engine died, and are not started yet
}

// ref names something of a tenant: a task, or a worker. The id alone would not
// do: the tag in it only marks a tenant, two may share one.
type ref struct{ tenant, task string }

// New rebuilds the live set from the store.
func New(ctx context.Context, opt Options) (*Swarm, error) {
	if opt.Record == nil {
		opt.Record = unheard{}
	}
	if opt.Slots == 0 {
		opt.Slots = 8
	}
	if opt.Deaths == 0 {
		opt.Deaths = defaultDeaths
	}
	sh := &shared{
		store: opt.Store, ledger: opt.Ledger, judge: opt.Judge, tasks: opt.Tasks, opt: opt, room: opt.Ledger.Room(),
		wake: make(chan struct{}, 1), born: time.Now(), runners: map[string]Runner{},
	}
	l := &leasing{damage: &damage{shared: sh, quarantined: map[string]map[uint64]bool{}}, leases: map[ref]*lease{}, granted: map[string]uint64{}, pulses: map[ref]*pulse{}}
	e := &ending{slotting: &slotting{leasing: l, handed: map[string]int{}}, releasing: map[string]map[uint64]uint64{}}
	s := &Swarm{ending: e, tended: map[ref]chan struct{}{}}
	s.guards.schedule, s.guards.leases = opt.Health.Guard("scheduler"), opt.Health.Guard("leases")
	s.Sessions = session.New(session.Options{Ledger: opt.Ledger, Judge: opt.Judge, Health: opt.Health, Work: s})
	s.Budgets = budget.New(budget.Options{Ledger: opt.Ledger, Judge: opt.Judge, Health: opt.Health, Sessions: s.Sessions, Agents: opt.Agents, Work: s})
	s.queue = queue.New(s.ring)
	s.slotted = s.slotKind()
	opt.Ledger.Register(s.slotted.Auditable())
	s.EStops = estop.New(estop.Options{Ledger: opt.Ledger, Work: s.acknowledged, Changed: s.poke})
	for _, g := range []judge.Gate{judge.GateStart, judge.GateResult} {
		s.judge.Own(g, s)
	}
	s.judge.Serve(s)
	s.tasks.Follow(s.taskChanged)
	s.tasks.Leaver(s)
	ids, err := opt.Store.Here(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	err = opt.Health.Tenants(ctx, component, ids, func(id string) error {
		s.tenantAdded(id)
		return s.rebuild(ctx, id)
	})
	if err != nil {
		return nil, fmt.Errorf("rebuild the tenants: %w", err)
	}
	return s, nil
}

// Runner adds the runner of a task kind. Call it before Recover.
func (s *shared) Runner(kind string, r Runner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runners[kind] = r
	if f, ok := r.(task.Follower); ok {
		s.tasks.Beside(kind, f)
	}
}

// runs is the runner of a task kind, nil for none.
func (s *shared) runs(kind string) Runner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runners[kind]
}

func (s *shared) runner(kind string) (Runner, error) {
	if r := s.runs(kind); r != nil {
		return r, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil, core.Invalid("kind", kind, fmt.Sprint("one of ", slices.Sorted(maps.Keys(s.runners))))
}

func (s *damage) tenantAdded(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quarantined[id] == nil {
		s.quarantined[id] = map[uint64]bool{}
	}
}

// Wake asks the scheduler for another look: an agent may be free now, or new
// under an emergency stop.
func (s *shared) Wake() {
	s.agents.Store(true)
	s.ring()
}

// ring asks the scheduler for another look.
func (s *shared) ring() { loop.Ring(s.wake) }

// poke rings the scheduler and every running task of a tenant.
func (s *leasing) poke(tenant string) {
	s.mu.Lock()
	for _, l := range s.leases {
		if l.tenant == tenant {
			l.poke()
		}
	}
	s.mu.Unlock()
	s.ring()
}

// What is kept of a tenant beside its tasks.
const (
	tenants    record.Rows[Tenant]       = "tenant"  // at tenantKey
	parked     record.Rows[task.Outcome] = "parked"  // number of a task: what waits at the result gate
	requests   record.Rows[request]      = "idem"    // hash of an idempotency key
	requestsOf record.Rows[[]byte]       = "idem.of" // number of a task → key in requests
)

// countLease is the counter of a tenant that leases are numbered by.
const countLease = "lease"

var tenantKey = record.Key("tenant")
