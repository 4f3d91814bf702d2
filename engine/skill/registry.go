package skill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/health"
	"swarmdeck/engine/safeopen"
)

// registry keeps the skills of every tenant: durable in the store, and in
// memory as immutable indexes that a change replaces.
//
// Lock order: writing, then mu. mu is never held while the ledger is called.
type registry struct {
	engines   *safeopen.Own // what no skill file is
	ledger    *audit.Ledger
	health    *health.Troubles
	runners   map[string]Runner // by kind, without composite
	env       func(tenant string, env map[string]string) error
	static    []*Skill // of the program itself, in every tenant
	contracts contracts
	writing   chan struct{} // one slot: one change of the registry at a time
	stir      chan struct{} // one slot: there are new sources to watch

	mu      sync.RWMutex
	shelves map[string]*index // by tenant
	sources map[string][]Source
	bad     map[string]map[string][]document.Problem // tenant → file → why it was refused last
}

// newRegistry reads the skills of every tenant. It writes nothing and starts
// nothing. Static skills are the program's own: every tenant has them, and
// they can't be unloaded.
func newRegistry(ctx context.Context, book *health.Troubles, ledger *audit.Ledger, tenants []string, runners map[string]Runner, static []Skill) (*registry, error) {
	r := &registry{
		ledger: ledger, health: book, runners: runners, writing: make(chan struct{}, 1), stir: make(chan struct{}, 1),
		shelves: map[string]*index{}, sources: map[string][]Source{}, bad: map[string]map[string][]document.Problem{},
	}
	if err := r.settle(static); err != nil {
		return nil, err
	}
	err := book.Tenants(ctx, component, tenants, func(tenant string) error {
		return ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			x, unread := r.readIndex(tx)
			sources, err := readSources(tx)
			unread = errors.Join(unread, err)
			refused, err := readRefused(tx)
			if x != nil {
				r.shelves[tenant] = x
			}
			r.sources[tenant], r.bad[tenant] = sources, refused
			return errors.Join(unread, err)
		})
	})
	if err != nil {
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

func (r *registry) install(tenant string, x *index) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shelves[tenant] = x
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

// resolve returns the skill that "name" or "name@version" stands for; without
// a version the newest. The value never changes: keep it, and a later load
// does not touch what runs. It may be called inside a transaction.
func (r *registry) resolve(tenant, ref string) (*Skill, error) { return r.index(tenant).resolve(ref) }

// chain lists what a run of a skill runs: its dependencies, each after its
// own, and the skill itself last.
func (r *registry) chain(tenant, ref string) ([]*Skill, error) {
	x := r.index(tenant)
	s, err := x.resolve(ref)
	if err != nil {
		return nil, err
	}
	return x.chain(s)
}

// adopt readies a skill that was kept elsewhere, as the pinned definition of a
// run is, for many checks of parameters and results.
func (r *registry) adopt(s *Skill) { r.contracts.adopt(s) }

// Skill returns the skill that "name" or "name@version" stands for (seed 3,
// get_skill). It is immutable.
func (r *registry) Skill(tenant, ref string) (*Skill, error) { return r.resolve(tenant, ref) }

// Order lists the dependencies of a skill in the order in which they run, and
// the skill itself last (seed 3, resolve_dependencies).
func (r *registry) Order(tenant, ref string) ([]*Skill, error) { return r.chain(tenant, ref) }

// Catalog is a tenant's skills by name, the newest version of each first. It
// is shared: don't change it.
func (r *registry) Catalog(tenant string) []*Skill { return r.index(tenant).all() }

// Newest tells whether a skill is what its bare name stands for.
func (r *registry) Newest(s *Skill) bool { return r.index(s.TenantID).newest(s) }

// List pages through a tenant's skills by name, the newest version of each
// first, those with all of tags (seed 3, list_skills). Kind filters on the
// kind of runner, Since and Until on the last change, Match on names,
// descriptions and tags.
func (r *registry) List(tenant string, f core.Filter, tags ...string) (core.Page[*Skill], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[*Skill]{}, err
	}
	var kept []*Skill
	match := strings.ToLower(f.Match)
	for _, s := range r.Catalog(tenant) {
		switch text := strings.ToLower(strings.Join(append([]string{s.Ref(), s.Description}, s.Tags...), "\n")); {
		case f.Status+f.Agent+f.Session+f.Trace+f.Task != "", // a skill has none of these
			f.Kind != "" && s.Runner.Kind != f.Kind,
			!f.Since.IsZero() && s.UpdatedAt.Before(f.Since),
			!f.Until.IsZero() && !s.UpdatedAt.Before(f.Until),
			!strings.Contains(text, match),
			slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(s.Tags, tag) }):
			continue
		}
		kept = append(kept, s)
	}
	from := min(f.Offset(), len(kept))
	return core.NewPage(kept[from:min(from+f.Size, len(kept))], f, len(kept)), nil
}

// Registry is the seed's SkillRegistry of a tenant.
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

// Sources are the files and directories that a tenant's skills are read from.
func (r *registry) Sources(tenant string) []Source {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.sources[tenant])
}

// Kinds are the kinds of runner that skills may name here.
func (r *registry) Kinds() []string {
	kinds := []string{composite}
	for kind := range r.runners {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// Auditables are the records that reconcile compares.
func (r *registry) Auditables() []audit.Auditable {
	return []audit.Auditable{auditedSkills{}, auditedSources{}}
}
