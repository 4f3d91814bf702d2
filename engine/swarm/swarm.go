package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/store"
)

// Options of New.
type Options struct {
	Store    store.Store
	Ledger   *audit.Ledger
	Judge    *judge.Judge
	Slots    int           // tasks without an agent that run at once; 0 means 8
	Spill    string        // directory for output past the inline limit
	LeaseTTL time.Duration // silence after which a worker counts as dead; 0 means 1 s
	ReadOnly bool          // repair nothing
}

// Swarm runs the tenants' tasks. Make one with New, add the runners, then Run.
type Swarm struct {
	store  store.Store
	ledger *audit.Ledger
	judge  *judge.Judge
	opt    Options

	heads heads
	wake  chan struct{} // one slot: something may be claimable, due or to freeze

	mu       sync.Mutex
	runners  map[string]Runner
	freezers []Freezer
	worlds   map[string]*world // by tenant
	leases   map[string]*lease // by task id
	waiters  map[string][]chan struct{}
	tick     time.Time // last look at the leases, to notice our own sleep
}

// world is what the scheduler keeps in mind about one tenant.
type world struct {
	lanes    map[lane]struct{}
	sessions map[string]SessionState // of sessions that are not stopped
	names    map[string]string       // session name → id, live ones
	budgets  map[string]*Budget
	estop    EStop
	nextDue  time.Time // earliest entry of the schedule; zero when none is known
}

// New rebuilds the live set from the store. Tasks that were running when the
// last engine died lose their lease: they are queued again, or failed.
func New(ctx context.Context, opt Options) (*Swarm, error) {
	if opt.Slots == 0 {
		opt.Slots = 8
	}
	if opt.LeaseTTL == 0 {
		opt.LeaseTTL = time.Second
	}
	s := &Swarm{
		store: opt.Store, ledger: opt.Ledger, judge: opt.Judge, opt: opt,
		wake: make(chan struct{}, 1), runners: map[string]Runner{}, worlds: map[string]*world{},
		leases: map[string]*lease{}, waiters: map[string][]chan struct{}{},
	}
	for _, g := range []judge.Gate{judge.GateStart, judge.GateResult, judge.GateBudget} {
		s.judge.Own(g, s)
	}
	ids, err := opt.Store.Tenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	for _, id := range ids {
		s.tenantAdded(id)
		if err := s.rebuild(ctx, id); err != nil {
			return nil, fmt.Errorf("rebuild tenant %s: %w", id, err)
		}
	}
	return s, nil
}

// Runner adds the runner of a task kind. Call it before Run.
func (s *Swarm) Runner(kind string, r Runner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runners[kind] = r
}

// Freezer adds one. Call it before Run.
func (s *Swarm) Freezer(f Freezer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freezers = append(s.freezers, f)
}

func (s *Swarm) runner(kind string) (Runner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.runners[kind]; ok {
		return r, nil
	}
	kinds := make([]string, 0, len(s.runners))
	for k := range s.runners {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return nil, core.Invalid("kind", kind, fmt.Sprint("one of ", kinds))
}

func (s *Swarm) world(tenant string) *world {
	w := s.worlds[tenant]
	if w == nil {
		w = &world{
			lanes: map[lane]struct{}{}, sessions: map[string]SessionState{},
			names: map[string]string{}, budgets: map[string]*Budget{}, estop: EStop{TenantID: tenant},
		}
		s.worlds[tenant] = w
	}
	return w
}

func (s *Swarm) tenantAdded(id string) {
	s.mu.Lock()
	s.world(id)
	s.mu.Unlock()
}

func (s *Swarm) sessionChanged(ses *Session) {
	s.mu.Lock()
	w := s.world(ses.TenantID)
	if ses.State == SessionStopped {
		delete(w.sessions, ses.SessionID)
		if w.names[ses.Name] == ses.SessionID {
			delete(w.names, ses.Name)
		}
	} else {
		w.sessions[ses.SessionID] = ses.State
		if ses.Name != "" {
			w.names[ses.Name] = ses.SessionID
		}
	}
	s.mu.Unlock()
	s.poke(ses.TenantID)
}

func (s *Swarm) sessionNamed(tenant, name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.worlds[tenant]
	if !ok {
		return "", false
	}
	id, ok := w.names[name]
	return id, ok
}

// Wake asks the scheduler for another look: an agent may be free now.
func (s *Swarm) Wake() { s.ring() }

// ring asks the scheduler for another look.
func (s *Swarm) ring() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// poke rings the scheduler and every running task of a tenant.
func (s *Swarm) poke(tenant string) {
	s.mu.Lock()
	for _, l := range s.leases {
		if l.tenant == tenant {
			l.poke()
		}
	}
	s.mu.Unlock()
	s.ring()
}

// local turns an id into its sequence number. An id of another tenant is
// refused and the attempt audited.
func (s *Swarm) local(ctx context.Context, by core.Caller, prefix, id string) (uint64, error) {
	seq, err := core.LocalSeq(prefix, by.Tenant, id)
	if errors.Is(err, core.ErrForeign) && !s.opt.ReadOnly {
		return 0, s.ledger.Refuse(ctx, by, audit.Entry{
			Type: "tenant.violation", Subject: "tenant", ID: by.Tenant,
			Detail: core.MustEncode(map[string]string{"named": id}),
		}, err)
	}
	return seq, err
}

func isCode(err error, c core.Code) bool { return errors.Is(err, core.Kind(c)) }

func contains[T comparable](list []T, v T) bool { return slices.Contains(list, v) }
