package skill

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

// registry keeps the skills of every tenant: durable in the store, and in
// memory as immutable indexes that a change replaces.
//
// Lock order: writing, then mu. mu is never held while the ledger is called.
type registry struct {
	opt       Options
	ledger    *audit.Ledger
	static    []*Skill // of the program itself, in every tenant
	contracts contracts
	writing   chan struct{} // one slot: one change of the registry at a time
	stir      chan struct{} // one slot: there are new sources to watch

	skills  record.Table[Skill]
	kept    record.Table[Source]
	sources record.Mirror[Source]
	refused record.Table[refusal]
	bad     record.Mirror[refusal]

	mu      sync.RWMutex
	shelves map[string]*index // by tenant
}

// newRegistry reads the skills of every tenant. It writes nothing and starts
// nothing. Static skills can't be unloaded.
func newRegistry(ctx context.Context, opt Options, tenants []string) (*registry, error) {
	r := &registry{
		opt: opt, ledger: opt.Ledger, writing: make(chan struct{}, 1), stir: make(chan struct{}, 1), shelves: map[string]*index{},
	}
	r.sources.Changed = func() { loop.Ring(r.stir) }
	r.skills, r.kept, r.refused = r.skillKind(), r.sourceKind(), r.refusalKind()
	r.ledger.Register(r.skills.Auditable(), r.kept.Auditable(), r.refused.Auditable())
	if err := r.settle(opt.Static); err != nil {
		return nil, err
	}
	if err := opt.Health.Tenants(ctx, component, tenants, func(tenant string) error { return r.read(ctx, tenant) }); err != nil {
		return nil, fmt.Errorf("read the skills: %w", err)
	}
	return r, nil
}

// settle checks the program's own skills by the rules of all others.
func (r *registry) settle(static []Skill) error {
	read := make([]origin, len(static))
	for i, s := range static {
		read[i].Definition = FromCode(s)
		read[i].skill.Source = Builtin
	}
	p := r.plan("", read, nil)
	if err := document.Err(p.refused); err != nil {
		return fmt.Errorf("the program's own skills: %w", err)
	}
	r.static = p.add
	return nil
}

// own are the program's skills as a tenant has them.
func (r *registry) own(tenant string) []*Skill {
	all := make([]*Skill, len(r.static))
	for i, s := range r.static {
		mine := *s
		mine.TenantID = tenant
		r.contracts.adopt(&mine)
		all[i] = &mine
	}
	return all
}

// index is what a tenant has now.
func (r *registry) index(tenant string) *index {
	r.mu.RLock()
	x := r.shelves[tenant]
	r.mu.RUnlock()
	if x != nil {
		return x
	}
	x = newIndex().with(r.own(tenant)...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if have := r.shelves[tenant]; have != nil {
		return have
	}
	r.shelves[tenant] = x
	return x
}

// write makes the caller the one who changes the registry, until release.
func (r *registry) write(ctx context.Context) (release func(), err error) {
	select {
	case r.writing <- struct{}{}:
		return func() { <-r.writing }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another change of the skills: %w", ctx.Err())
	}
}

// Skill returns the skill that "name" or "name@version" stands for; without a
// version the newest (model 3, get_skill). The value never changes: keep it, and
// a later load does not touch what runs. It may be called inside a transaction.
func (r *registry) Skill(tenant, ref string) (*Skill, error) { return r.index(tenant).resolve(ref) }

// Order lists the dependencies of a skill in the order in which they run, each
// after its own, and the skill itself last (model 3, resolve_dependencies).
func (r *registry) Order(tenant, ref string) ([]*Skill, error) {
	x := r.index(tenant)
	s, err := x.resolve(ref)
	if err != nil {
		return nil, err
	}
	return x.chain(s)
}

// Catalog is a tenant's skills by name, the newest version of each first. It
// is shared: don't change it.
func (r *registry) Catalog(tenant string) []*Skill { return r.index(tenant).all() }

// Newest tells whether a skill is what its bare name stands for.
func (r *registry) Newest(s *Skill) bool { return r.index(s.TenantID).newest(s) }

// List pages through a tenant's skills by name, the newest version of each
// first, those with all of tags (model 3, list_skills). Kind filters on the
// kind of runner, Since and Until on the last change, Match on names,
// descriptions and tags.
func (r *registry) List(tenant string, f core.Filter, tags ...string) (core.Page[*Skill], error) {
	tagged := core.Where(r.Catalog(tenant), func(s *Skill) bool {
		return f.Task == "" && !slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(s.Tags, tag) }) // a skill has no task
	})
	return core.Pick(tagged, nil, f, func(s *Skill) core.Traits {
		return core.Traits{Kind: s.Runner.Kind, At: s.UpdatedAt, Text: strings.Join(append([]string{s.Ref(), s.Description}, s.Tags...), "\n")}
	})
}

// Registry is the model's SkillRegistry of a tenant.
type Registry struct {
	TenantID        string              `json:"tenant_id"`
	RegistryID      string              `json:"registry_id"`      // always "default"
	Skills          map[string]*Skill   `json:"skills"`           // the newest of each name
	DependencyGraph map[string][]string `json:"dependency_graph"` // of the newest of each name
	LastUpdated     time.Time           `json:"last_updated,omitzero"`
}

// Registry is the whole of a tenant's skills.
func (r *registry) Registry(tenant string) Registry {
	x := r.index(tenant)
	all := Registry{
		TenantID: tenant, RegistryID: RegistryID, LastUpdated: x.updated,
		Skills: map[string]*Skill{}, DependencyGraph: map[string][]string{},
	}
	for name, versions := range x.skills {
		all.Skills[name], all.DependencyGraph[name] = versions[0], versions[0].Dependencies
	}
	return all
}

// Sources are the files and directories that a tenant's skills are read from,
// by path.
func (r *registry) Sources(tenant string) []Source {
	return core.Map(core.Sorted(r.sources.Of(tenant)), func(s *Source) Source { return *s })
}

// Kinds are the kinds of runner that skills may name here.
func (r *registry) Kinds() []string {
	kinds := []string{composite}
	kinds = slices.AppendSeq(kinds, maps.Keys(r.opt.Runners))
	slices.Sort(kinds)
	return kinds
}
