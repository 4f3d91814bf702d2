package skill

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Judge   *judge.Judge
	Swarm   *swarm.Swarm
	Tasks   *task.Table
	Bus     Bus               // what the ends of runs are announced on
	Runners map[string]Runner // by kind; composite needs none
	Static  []Skill           // the program's own: every tenant has them
	// MaxSubagents is how many subagents of a tenant may be live at once; 0
	// means 100. Each runs beside the others.
	MaxSubagents int
	// Env reports an environment that a skill can't have, naming the field; nil
	// takes any.
	Env      func(tenant string, env map[string]string) error
	ReadOnly bool // repair nothing
	// Own are the engine's own files, which no skill is loaded from.
	Own    *safeopen.Own
	Health *health.Troubles
}

// component is what troubles of this package are told under.
const component = "skills"

// Bus takes the messages about runs, and gives those that are reacted to;
// *bus.Bus is one.
type Bus interface {
	AcceptIn(tx *audit.Tx, m bus.Send) (bus.Message, error)
	Subscribe(ctx context.Context, tenant string, opt bus.SubscribeOptions) (*bus.Subscription, error)
	SubscribeIn(tx *audit.Tx, name, pattern string) error
	UnsubscribeIn(tx *audit.Tx, name string) error
}

// Skills keeps every tenant's skills and the subagents that run them. It
// carries out skill.invoke tasks for the swarm and settles the approvals of
// their steps for the judge.
//
// Lock order: no lock is held while the ledger, the swarm, the judge or a
// runner is called.
type Skills struct {
	*registry
	opt     Options
	asked   *swarm.Questions
	running atomic.Bool // Run is at work

	agents    record.Kind[Subagent]
	execs     record.Kind[Execution]
	kind      record.Kind[Reaction]
	live      record.Mirror[Subagent] // those that are not over
	reactions record.Mirror[Reaction]
	reacts    chan struct{} // one slot: the reactions changed

	mu    sync.RWMutex
	plans map[string]*index // what the runs of live ones are made of, by id
}

var _ judge.Settler = (*Skills)(nil)

// New reads what the store has, and ends what an engine that died left half
// done. It starts nothing. The caller makes it known to the swarm (Runner of
// KindInvoke) and to the judge (Own GateSkill).
func New(ctx context.Context, opt Options) (*Skills, error) {
	tenants, err := opt.Swarm.Tenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the skills: %w", err)
	}
	if opt.MaxSubagents == 0 {
		opt.MaxSubagents = 100
	}
	ids := make([]string, len(tenants))
	for i, t := range tenants {
		ids[i] = t.TenantID
	}
	s := &Skills{opt: opt, asked: opt.Swarm.Questions(), plans: map[string]*index{}, reacts: make(chan struct{}, 1)}
	s.live.Keep = func(a *Subagent) bool { return !a.State.Final() }
	s.reactions.Changed = func() { ring(s.reacts) }
	if s.registry, err = newRegistry(ctx, opt.Health, opt.Ledger, ids, opt.Runners, opt.Static); err != nil {
		return nil, err
	}
	s.agents, s.execs, s.kind = s.agentKind(), s.execKind(), s.reactionKind()
	s.registry.engines = opt.Own
	s.registry.env = opt.Env
	opt.Ledger.Register(s.agents.Auditable(), s.execs.Auditable(), s.kind.Auditable())
	if err := opt.Health.Tenants(ctx, component, ids, func(tenant string) error { return s.recall(ctx, tenant) }); err != nil {
		return nil, fmt.Errorf("read the subagents: %w", err)
	}
	return s, nil
}

// Run reads the skills again whenever their files change, and carries out the
// reactions, until ctx ends.
func (s *Skills) Run(ctx context.Context) error {
	s.running.Store(true)
	defer s.running.Store(false)
	ctx, stop := context.WithCancel(ctx)
	var reacting sync.WaitGroup
	defer reacting.Wait()
	defer stop()
	reacting.Go(func() { s.react(ctx) })
	return s.watch(ctx)
}

// left reports that what is under way by its record was left so by an engine
// that ended, a killed one for example: only one that runs goes on with it.
func (s *Skills) left(underWay bool) bool { return underWay && !s.running.Load() }

// alive is a subagent that is not over, nil when there is none with this id.
func (s *Skills) alive(tenant, id string) *Subagent { return s.live.Get(tenant, id) }

// Parties are the live subagents as senders and recipients of messages. Its
// methods may be called inside transactions.
type Parties struct{ s *Skills }

// Parties are the live subagents as the bus knows them.
func (s *Skills) Parties() Parties { return Parties{s} }

// Known reports whether an id is that of a live subagent.
func (p Parties) Known(tenant, id string) bool { return p.s.alive(tenant, id) != nil }

// All are the ids of the live subagents.
func (p Parties) All(tenant string) []string { return slices.Sorted(maps.Keys(p.s.live.Of(tenant))) }

// Elsewhere reports whether an id is that of another tenant's live subagent.
func (p Parties) Elsewhere(tenant, id string) bool { return p.s.live.Elsewhere(tenant, id) }

// Live are a tenant's subagents that are not over, oldest first. The records
// are shared: they must not be modified. They have no results.
func (s *Skills) Live(tenant string) []*Subagent {
	var all []*Subagent
	for _, a := range s.live.Of(tenant) {
		if s.left(a.State == Running) {
			c := *a
			c.left, a = true, &c
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *Subagent) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.AgentID, b.AgentID)
	})
	return all
}
