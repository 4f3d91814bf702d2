package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Options of New.
type Options struct {
	Ledger   *audit.Ledger
	Judge    *judge.Judge
	Swarm    *swarm.Swarm
	Tasks    *task.Table
	Runtimes map[string]Runtime // by Agent.Runtime
	Stuck    StuckLimits
	// Taken reports whether a name belongs to somebody else who gets messages,
	// so that no agent is given it; nil knows nobody.
	Taken func(tenant, name string) bool
	// Held is why an agent takes no task yet, "" where it does; nil holds nobody.
	Held func(tenant, name string) string
	// Observer is told what agents do; nil tells nobody.
	Observer Observer
	// Past is what a fork is told before its first prompt; nil tells nothing.
	Past func(context.Context, Agent) (string, error)
	// Host reports why an agent can't have its place on a host; nil knows none.
	Host func(ctx context.Context, tenant, host, agent string) error
	// Choose chooses a host by the labels that it must have; nil knows none.
	Choose func(ctx context.Context, tenant, selector string) (host string, err error)
	// Lacks is why an agent can't be opened here; nil always lets it.
	Lacks func(tenant, name string) error
	// Elsewhere reports a tenant that a running engine in another process has; nil
	// knows of none.
	Elsewhere func(tenant string) bool
	// Beyond is the tree of an agent's own that a directory of its cell lies in, and why
	// what it does there can be felt beyond that; "" where it can't. Nil knows of no trees.
	Beyond func(tenant, agent, dir string) (tree, why string)
	// Secrets keep credentials out of records; nil keeps none.
	Secrets *secret.Secrets
	Health  *health.Troubles
}

// Fleet keeps the agents of every tenant. It carries out agent.prompt tasks
// for the swarm and settles the approvals of tool calls for the judge.
//
// Lock order: Fleet.mu, then a member's. None is held while the ledger, the
// swarm, the judge or a runtime is called.
type Fleet struct {
	roster
	placing sync.Mutex // is held while an agent gets its place on a host
	leavers []func(tx *audit.Tx, name string) error
	unread  bool // there are agents that New could not read
}

// roster is who there is, what was said of them and what waits for them; it starts
// nothing.
type roster struct {
	opt      Options
	agents   record.Table[Agent]
	projects record.Table[Project]
	roles    record.Table[Role]
	messages record.Table[Message]

	mu     sync.RWMutex
	fleet  map[string]map[string]*member // tenant → name
	launch func(*member)                 // starts supervising; nil unless Run is running
}

var (
	_ estop.Freezer = (*Fleet)(nil)
	_ judge.Settler = (*Fleet)(nil)
)

// Leaver adds who gives up what an agent has that is deleted, with it. Call it
// before Run.
func (f *Fleet) Leaver(left func(tx *audit.Tx, name string) error) {
	f.leavers = append(f.leavers, left)
}

// New reads the agents of every tenant. It writes nothing and starts nothing.
// The caller makes the fleet known to the swarm (Runner of KindPrompt, Freezer)
// and to the judge (Await GateTool).
func New(ctx context.Context, opt Options) (*Fleet, error) {
	f := &Fleet{roster: roster{opt: opt, fleet: map[string]map[string]*member{}}}
	f.agents, f.projects, f.roles, f.messages = f.agentKind(), f.projectKind(), f.roleKind(), f.messageKind()
	opt.Ledger.Register(f.agents.Auditable(), f.projects.Auditable(), f.roles.Auditable(), f.messages.Auditable())
	err := f.everywhere(ctx, func(tenant string) error {
		err := f.agents.Read(ctx, tenant)
		f.unread = f.unread || err != nil
		return errors.Join(err, f.messages.Read(ctx, tenant))
	})
	if err != nil {
		return nil, fmt.Errorf("read the fleet: %w", err)
	}
	return f, nil
}

// everywhere does something for each tenant.
func (f *roster) everywhere(ctx context.Context, do func(tenant string) error) error {
	ids, err := f.opt.Swarm.Here(ctx)
	if err != nil {
		return err
	}
	return f.opt.Health.Tenants(ctx, component, ids, do)
}

// follow has an agent's member take its newest record over; nil was deleted. A
// new one is supervised when Run is running.
func (f *roster) follow(tenant, name string, a *Agent) {
	if m := f.member(tenant, name); m != nil && a != nil {
		m.saved(a)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a == nil {
		delete(f.fleet[tenant], name)
		return
	}
	if f.fleet[tenant] == nil {
		f.fleet[tenant] = map[string]*member{}
	}
	m := f.newMember(a)
	f.fleet[tenant][name] = m
	if f.launch != nil {
		f.launch(m)
	}
}

func (f *roster) member(tenant, name string) *member {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.fleet[tenant][name]
}

// running reports whether Run keeps the agents going.
func (f *roster) running() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.launch != nil
}

// members of a tenant by name; of all tenants when tenant is "".
func (f *roster) members(tenant string) []*member {
	f.mu.RLock()
	var out []*member
	for t, fleet := range f.fleet {
		if tenant == "" || t == tenant {
			out = slices.AppendSeq(out, maps.Values(fleet))
		}
	}
	f.mu.RUnlock()
	slices.SortFunc(out, func(a, b *member) int {
		return cmp.Or(strings.Compare(a.tenant, b.tenant), strings.Compare(a.name, b.name))
	})
	return out
}

// find returns a tenant's agent. A name that only another tenant has is
// refused and audited.
func (f *roster) find(ctx context.Context, by core.Caller, name string) (*member, error) {
	if m := f.member(by.Tenant, name); m != nil {
		return m, nil
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if !f.Elsewhere(by.Tenant, name) {
		return nil, core.Missing("agent", name)
	}
	return nil, f.opt.Ledger.Foreign(ctx, by, "agent", name, fmt.Errorf("agent %s: %w", name, core.ErrForeign))
}

// keep tells the runtimes which of their agents there are. One that can't give
// up what it keeps for others goes on later; only what it can't read is an error.
func (f *Fleet) keep(ctx context.Context) {
	if f.unread {
		return // a runtime removes what is no agent's, and would take theirs for that
	}
	for name, rt := range f.opt.Runtimes {
		k, ok := rt.(Keeper)
		if !ok {
			continue
		}
		var agents []Agent
		for _, m := range f.members("") {
			if a := m.rec.Load(); a.Runtime == name {
				agents = append(agents, *a)
			}
		}
		if err := k.Keep(ctx, agents); err != nil {
			f.opt.Health.Report("", component, "runtime "+name, fmt.Errorf("tell it of its agents: %w", err))
		}
	}
}

// Run repairs what a crash left, opens the agents of every tenant and
// supervises them until ctx ends; it returns when every agent is closed.
func (f *Fleet) Run(ctx context.Context) error {
	if err := f.Recover(ctx); err != nil {
		return err
	}
	f.keep(ctx)
	var all sync.WaitGroup
	f.mu.Lock()
	f.launch = func(m *member) { all.Go(func() { f.supervise(ctx, m) }) }
	for _, fleet := range f.fleet {
		for _, m := range fleet {
			f.launch(m)
		}
	}
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock() // from here on nothing is launched, so Wait can't race with Go
	f.launch = nil
	f.mu.Unlock()
	all.Wait()
	return nil
}

// component is what troubles of this package are told under.
const component = "fleet"

// Known reports whether a tenant has an agent of this name.
func (f *roster) Known(tenant, name string) bool { return f.member(tenant, name) != nil }

// Elsewhere reports whether another tenant has one.
func (f *roster) Elsewhere(tenant, name string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for other, fleet := range f.fleet {
		if other != tenant && fleet[name] != nil {
			return true
		}
	}
	return false
}

// All lists the names of a tenant's agents, in order.
func (f *roster) All(tenant string) []string {
	members := f.members(tenant)
	return core.Map(members, func(m *member) string { return m.name })
}
