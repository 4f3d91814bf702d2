package tree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/place"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

const maxTrees = 1000 // of a tenant

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Driver  Driver      // nil where nothing makes trees
	Place   place.Place // where it makes them
	Tenants func(context.Context) ([]string, error)
	Health  *health.Troubles
	// Keep keeps what a card shows, and returns its digest.
	Keep func(tenant string, text []byte) (sha256 string)

	Swarm *swarm.Swarm
	Tasks *task.Table
	Bus   *bus.Bus
	Fleet *fleet.Fleet
}

// project is that of an agent, busy whether it works.
func (o *Options) project(tenant, agent string) string {
	now, _ := o.Fleet.Now(tenant, agent)
	return now.Agent.Project
}

func (o *Options) busy(tenant, agent string) bool {
	now, _ := o.Fleet.Now(tenant, agent)
	return now.TaskID != ""
}

// Trees keeps the trees of every tenant. It is safe for concurrent use.
type Trees struct {
	opt    Options
	kind   record.Table[Tree]
	drafts record.Table[Review]
	lists  record.Table[Checks]

	trees   record.Mirror[Tree]   // by agent
	reviews record.Mirror[Review] // the same
	checks  record.Mirror[Checks] // by project
	loop    *loop.Loop

	mu      sync.Mutex                            // guards what follows
	touched map[string]map[string]*touched        // by tenant and agent
	landing map[string]string                     // task by source that it changes
	setups  map[[2]string]context.CancelCauseFunc // what ends those at work, by tenant and agent
}

// New reads the trees of every tenant.
func New(ctx context.Context, opt Options) (*Trees, error) {
	s := &Trees{opt: opt, touched: map[string]map[string]*touched{}, landing: map[string]string{}, setups: map[[2]string]context.CancelCauseFunc{}}
	s.loop = loop.New(loop.Options{Component: component, Health: opt.Health, Clock: opt.Ledger.Clock(), Tenants: opt.Tenants, Pass: s.sweep})
	s.kind = &record.Kind[*Tree]{
		Noun: "tree", Bucket: "tree", Limit: maxTrees, Ledger: opt.Ledger, Follow: s.follow,
		ID:    func(t *Tree) string { return t.Agent },
		Whole: true,
	}
	s.drafts = &record.Kind[*Review]{
		Noun: "review", Bucket: "review", Limit: maxTrees, Ledger: opt.Ledger, Follow: s.reviews.Follow,
		ID:    func(r *Review) string { return r.Agent },
		State: func(r *Review) any { return map[string]int{"remarks": len(r.Remarks), "viewed": len(r.Viewed)} },
	}
	s.lists = &record.Kind[*Checks]{
		Noun: "checks of a project", Subject: "project.checks", Bucket: "project.checks", Limit: maxTrees, Ledger: opt.Ledger, Follow: s.checks.Follow,
		ID:    func(c *Checks) string { return c.Project },
		Whole: true,
	}
	opt.Ledger.Register(s.kind.Auditable(), s.drafts.Auditable(), s.lists.Auditable())
	for _, read := range []func(context.Context, *health.Troubles, func(context.Context) ([]string, error)) error{s.kind.ReadAll, s.drafts.ReadAll, s.lists.ReadAll} {
		if err := read(ctx, opt.Health, opt.Tenants); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// component names the service among troubles.
const component = "trees"

// follow takes over what a commit did to a tree; nil removed it.
func (s *Trees) follow(tenant, agent string, t *Tree) {
	s.trees.Follow(tenant, agent, t)
	if t != nil && t.Landing.open() { // nobody else changes the source meanwhile
		_ = s.claim(t.Source, t.Landing.Task)
	}
	switch {
	case t == nil:
		s.mu.Lock()
		delete(s.touched[tenant], agent)
		s.mu.Unlock()
	case t.Phase == Leaving:
		s.endSetup(tenant, agent)
		s.loop.Ring(tenant)
	case t.Phase == Ready && t.Setup != nil:
		s.loop.Ring(tenant)
	case t.Phase == Making:
		s.loop.Due(tenant, t.UpdatedAt.Add(orphanAge))
	}
}

// Has is the tree of an agent, where it has one of its own.
func (s *Trees) Has(tenant, agent string) (t Tree, is bool) {
	if at := s.trees.Get(tenant, agent); at != nil {
		t = *at
	}
	return t, t.Agent != "" && t.Phase != Leaving
}

// works is the tree of an agent that can be looked at, where it has one.
func (s *Trees) works(tenant, agent string) (Tree, bool) {
	t, ok := s.Has(tenant, agent)
	return t, ok && t.Phase == Ready && s.opt.Driver != nil && s.away(t) == nil
}

// away is the error of a tree that lies on another machine, or whose source does.
func (s *Trees) away(t Tree) error {
	at := t.Path
	if t.Host != "" {
		at = t.Source
	}
	return t.Place.Away(s.opt.Place, "the tree of "+t.Agent, at)
}

// Away is why an agent can't work: its tree lies on another machine.
func (s *Trees) Away(tenant, agent string) error {
	if t, ok := s.Has(tenant, agent); ok {
		return s.away(t)
	}
	return nil
}

// fault tells which trees of a tenant lie on other machines; nil where none does.
func (s *Trees) fault(tenant string) error {
	hosts, agents := map[string]bool{}, []string(nil)
	for _, t := range s.All(tenant) {
		if s.away(t) != nil {
			hosts[t.Place.Host()] = true
			agents = append(agents, t.Agent)
		}
	}
	if len(agents) == 0 {
		return nil
	}
	on := strings.Join(slices.Sorted(maps.Keys(hosts)), ", ")
	return core.Errorf(core.Unavailable, "the trees of %s lie on %s and can't be reached from here: these agents work again when an engine there has the tenant", Named(agents), on)
}

// at is the tree of an agent whose files can be reached.
func (s *Trees) at(tenant, agent string) (Tree, error) {
	t, err := s.Tree(tenant, agent)
	if err == nil {
		err = s.away(t)
	}
	if err == nil && s.opt.Driver == nil {
		err = blind()
	}
	return t, err
}

// Tree is the tree of an agent; one without is NOT_FOUND.
func (s *Trees) Tree(tenant, agent string) (Tree, error) {
	t, ok := s.Has(tenant, agent)
	if !ok {
		return t, notThere(agent)
	}
	return t, nil
}

// Beyond is the tree of an agent, and why what it does in a directory can be felt beyond
// that, or leaves no state from before; "" where it can't.
func (s *Trees) Beyond(tenant, agent, dir string) (tree, why string) {
	t, is := s.works(tenant, agent)
	switch {
	case !is:
		return "", "its directory is shared: it has no tree of its own, which keeps a state from before"
	case dir != t.Path && !strings.HasPrefix(dir, t.Path+"/"):
		why = dir + " is not in its own tree"
	}
	return t.Path, why
}

// All are the trees of a tenant, by agent.
func (s *Trees) All(tenant string) (all []Tree) {
	for _, t := range s.trees.Of(tenant) {
		if t.Phase != Leaving {
			all = append(all, *t)
		}
	}
	core.Sort(all, func(a, b Tree) int { return strings.Compare(a.Agent, b.Agent) })
	return all
}

// Reads are the places outside of its tree that an agent reads as its own.
func (s *Trees) Reads(tenant, agent string) []string {
	if t, ok := s.Has(tenant, agent); ok && s.opt.Driver != nil {
		return s.opt.Driver.Reads(t)
	}
	return nil
}

// Repository is the name of the git repository that a directory is in, of which trees
// are made unless somebody says otherwise; "" for none.
func (s *Trees) Repository(dir string) string {
	if s.opt.Driver == nil {
		return ""
	}
	return s.opt.Driver.Repository(dir)
}

// Prepare makes a tree for an agent that is about to be made. One that an earlier try has left without its agent is used, or made anew
// where it is of something else.
func (s *Trees) Prepare(ctx context.Context, by core.Caller, w Wanted) (Tree, error) {
	agent := w.Agent
	if s.opt.Driver == nil {
		return Tree{}, core.Errorf(core.Unavailable, "tree: nothing makes trees here").With("field", "tree")
	}
	if s.opt.Fleet.Known(by.Tenant, agent) {
		return Tree{}, core.Errorf(core.Conflict, "name: agent %q exists already", agent).With("error", "AgentAlreadyExistsError").With("field", "name").With("value", agent)
	}
	t, err := s.opt.Driver.Look(ctx, by.Tenant, w)
	if err != nil {
		return t, err
	}
	t.Setup = newSetup(s.ChecksOf(by.Tenant, w.Project).Setup)
	if old := s.trees.Get(by.Tenant, agent); old != nil {
		if old.Phase == Ready && s.away(*old) == nil && old.Setup.same(t.Setup) && old.Source == t.Source && old.Host == t.Host && old.Base == t.Base && old.BaseCommit == t.BaseCommit {
			return *old, nil
		}
		if s.endSetup(by.Tenant, agent) {
			return t, core.Errorf(core.Unavailable, "the tree that %s had is still being set up, which is stopped now: try again", agent)
		}
		if err := s.remove(ctx, *old); err != nil {
			return t, err
		}
	}
	t.Place = s.opt.Place
	if t.Place != "" { // what an earlier tree has left that was removed from elsewhere
		if err := s.opt.Driver.Remove(ctx, t); err != nil {
			return t, fmt.Errorf("remove what an earlier tree of %s has left: %w", agent, err)
		}
	}
	if t.Kind == Plain {
		if t.Since, err = s.opt.Driver.Tip(ctx, t); err != nil {
			return t, fmt.Errorf("copy %s: %w", t.Source, err)
		}
	}
	t.Phase = Making
	if by.Kind != core.Agent { // an agent takes nothing along that it was not given itself
		t.Included = &Included{}
	}
	found := t.Included // which the driver fills
	if err := s.save(ctx, by, "tree.making", &t, nil); err != nil {
		return t, err
	}
	if err := s.opt.Driver.Make(ctx, t); err != nil {
		return t, errors.Join(fmt.Errorf("make the tree of %s: %w", agent, err), s.remove(context.WithoutCancel(ctx), t))
	}
	err = s.save(ctx, by, "tree.made", &t, func(t *Tree) { t.Phase, t.Included = Ready, found })
	return t, err
}

// save writes a tree with a change, in a transaction of its own.
func (s *Trees) save(ctx context.Context, by core.Caller, event string, t *Tree, change func(*Tree)) error {
	return s.saveWith(ctx, by, event, t, change, nil)
}

// saveWith saves what has more to tell than where the tree stands.
func (s *Trees) saveWith(ctx context.Context, by core.Caller, event string, t *Tree, change func(*Tree), detail map[string]any) error {
	return s.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.kind.Load(tx, t.Agent)
		if err != nil {
			return err
		}
		if old != nil {
			*t = *old
		}
		if change != nil {
			change(t)
		}
		all := map[string]any{"source": t.Source, "since": t.Since}
		maps.Copy(all, detail)
		return s.kind.Save(tx, record.Event{Type: event, Detail: all}, old, t)
	})
}

// remove takes a tree away, and its record last. The files of one that lies elsewhere
// stay until a tree is made in their place.
func (s *Trees) remove(ctx context.Context, t Tree) error {
	if s.away(t) == nil {
		if err := s.opt.Driver.Remove(ctx, t); err != nil {
			return fmt.Errorf("remove the tree of %s: %w", t.Agent, err)
		}
	}
	s.opt.Health.Clear(t.TenantID, component, "setup of "+t.Agent)
	_, err := s.kind.Delete(ctx, core.Self(t.TenantID, component), "tree.removed", t.Agent)
	return err
}

// MayLeave refuses to let a tree go that has work which was not taken over.
func (s *Trees) MayLeave(ctx context.Context, tenant, agent string) error {
	if err := s.Away(tenant, agent); err != nil {
		return core.Errorf(core.Unavailable, "%v; whether it has work that was not taken over is not known: say --discard to lose it", err).With("field", "discard").With("value", agent)
	}
	t, ok := s.works(tenant, agent)
	if !ok {
		return nil
	}
	now, err := s.opt.Driver.Now(ctx, t)
	if err != nil {
		return fmt.Errorf("agent: whether %s has work that was not taken over can't be seen; say --discard to delete it all the same: %w", agent, err)
	}
	all, err := s.opt.Driver.Changes(ctx, t, t.Since, now.Commit)
	if err != nil || len(all) == 0 {
		return err
	}
	added, removed := sums(all)
	return core.Errorf(core.Conflict, "agent: %s has work that was not taken over: %d files, +%d -%d; merge it, or say --discard to lose it", agent, len(all), added, removed).With("field", "discard").With("value", agent)
}

func sums(all []Change) (added, removed int) {
	for _, c := range all {
		added, removed = added+c.Added, removed+c.Removed
	}
	return added, removed
}

// Left notes that an agent is gone, in the transaction that deletes it. Its tree
// goes after that.
func (s *Trees) Left(tx *audit.Tx, agent string) error {
	t, err := s.kind.Load(tx, agent)
	if err != nil || t == nil {
		return err
	}
	if t.Landing.open() {
		return core.Errorf(core.Conflict, "agent: %s is at work on the files of %s: delete it when that is over", t.Landing.Task, t.Source).With("field", "agent")
	}
	old := *t
	t.Phase = Leaving
	if err := s.kind.Save(tx, record.Event{Type: "tree.leaving"}, &old, t); err != nil {
		return err
	}
	if r, err := s.drafts.Load(tx, agent); err != nil {
		return err
	} else if r != nil {
		if err := s.drafts.Remove(tx, record.Event{Type: "review.removed"}, r); err != nil {
			return err
		}
	}
	return nil
}

// orphanAge is how long a tree may be there before its agent.
const orphanAge = time.Minute

// Run removes trees whose agents are gone, until ctx ends.
func (s *Trees) Run(ctx context.Context) error { return s.loop.Run(ctx) }

// sweep sets up what is new, and removes what is to go: trees of agents that were
// deleted, and of those that were never made.
func (s *Trees) sweep(ctx context.Context, tenant string, _ bool) (next time.Time, err error) {
	if away := s.fault(tenant); away != nil {
		s.opt.Health.Report(tenant, component, health.Elsewhere, away)
	} else {
		s.opt.Health.Clear(tenant, component, health.Elsewhere)
	}
	now := s.opt.Ledger.Clock().Now()
	look := func(at time.Time) {
		if next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	left, err := s.mendAll(ctx, tenant)
	if left {
		look(now.Add(mendSoon))
	}
	for agent, t := range s.trees.Of(tenant) {
		due := t.UpdatedAt.Add(orphanAge)
		switch {
		case s.away(*t) != nil: // until an engine there has the tenant
		case t.Phase != Leaving && s.opt.Fleet.Known(tenant, agent):
			at, bad := s.setUp(ctx, *t)
			look(at)
			err = errors.Join(err, bad)
		case t.Phase == Ready && t.Setup != nil && due.After(now):
			look(now.Add(setupSoon)) // its agent comes any moment
		case t.Phase != Leaving && due.After(now):
			look(due)
		case s.endSetup(tenant, agent):
			look(now.Add(setupSoon))
		default:
			err = errors.Join(err, s.remove(ctx, *t))
		}
	}
	return next, err
}
