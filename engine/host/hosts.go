package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

// Driver links to hosts.
type Driver interface {
	// Keep keeps the link to a host until ctx ends, and tries again as long.
	Keep(ctx context.Context, h Host) error
	// Clear ends all that runs on a host and removes what was put there.
	Clear(ctx context.Context, h Host) error
	// Link is how the link is now.
	Link(tenant, name string) Link
}

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Driver  Driver // nil links to nothing
	Tenants func(context.Context) ([]string, error)
	Health  *health.Troubles
	// Agents are those that have their place on a host, by name.
	Agents func(tenant, host string) []string
}

// Hosts keeps the hosts of every tenant and, while Run does, their links. It is
// safe for concurrent use.
type Hosts struct {
	opt  Options
	kind record.Table[Host]
	crew loop.Crew[Host]
}

// New makes the service; Run links.
func New(opt Options) *Hosts {
	s := &Hosts{opt: opt}
	s.kind = &record.Kind[*Host]{
		Noun: "host", Bucket: "host", Limit: maxHosts, Ledger: opt.Ledger, Follow: s.crew.Follow,
		ID:    func(h *Host) string { return h.Name },
		Whole: true,
	}
	s.crew = loop.Crew[Host]{
		Component: "hosts", Kind: s.kind, Health: opt.Health, Tenants: opt.Tenants,
		Same: func(h, o *Host) bool {
			return h.sameWay(o) && h.LeaseS == o.LeaseS && h.Removing == o.Removing && h.CreatedAt.Equal(o.CreatedAt)
		},
		Changed: make(chan struct{}, 1),
	}
	if opt.Driver != nil {
		s.crew.Work = s.work
	}
	opt.Ledger.Register(s.kind.Auditable())
	return s
}

// Run keeps the links until ctx ends.
func (s *Hosts) Run(ctx context.Context) error { return s.crew.Run(ctx) }

// work is what is done for one host.
func (s *Hosts) work(ctx context.Context, h *Host) error {
	if !h.Removing {
		return s.opt.Driver.Keep(ctx, *h)
	}
	if err := s.opt.Driver.Clear(ctx, *h); err != nil {
		return fmt.Errorf("clear host %s: %w", h.Name, err)
	}
	// It is done though the engine ends just now.
	return s.drop(context.WithoutCancel(ctx), core.Self(h.TenantID, "hosts"), h.Name, "host.removed")
}

func (s *Hosts) drop(ctx context.Context, by core.Caller, name, event string) error {
	_, err := s.kind.Delete(ctx, by, event, name)
	return err
}

// Add keeps a host as it is given and says what that did: created, changed or
// unchanged. One that is there can't become another machine.
func (s *Hosts) Add(ctx context.Context, by core.Caller, h Host) (_ Host, action string, err error) {
	if err := h.Check(); err != nil {
		return h, "", err
	}
	if err := s.kind.ByOperator(ctx, by, h.Name); err != nil {
		return h, "", err
	}
	err = s.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.kind.Load(tx, h.Name)
		if err != nil {
			return err
		}
		if old != nil {
			switch {
			case old.Removing:
				return leaving(h.Name)
			case !old.sameWay(&h):
				return core.Errorf(core.Conflict, "host %s is %s: remove it first", h.Name, old.Way()).With("field", "address")
			}
		}
		action, err = s.kind.Put(tx, record.Event{}, &h, nil)
		return err
	})
	return h, action, err
}

// Drain has a host take no more agents, or take them again.
func (s *Hosts) Drain(ctx context.Context, by core.Caller, name string, drain bool) (Host, error) {
	event := "host.draining"
	if !drain {
		event = "host.undrained"
	}
	return s.set(ctx, by, name, event, func(h *Host) error {
		h.Draining = drain
		return nil
	})
}

// set changes one host.
func (s *Hosts) set(ctx context.Context, by core.Caller, name, event string, fn func(*Host) error) (now Host, err error) {
	if err := s.kind.ByOperator(ctx, by, name); err != nil {
		return now, err
	}
	err = s.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.kind.Need(tx, name)
		if err != nil {
			return err
		}
		now = *old
		if err := fn(&now); err != nil || s.kind.Same(old, &now) {
			return err
		}
		return s.kind.Save(tx, record.Event{Type: event}, old, &now)
	})
	return now, err
}

// How long Remove waits for what it has recorded to be done.
const (
	removePatience = 30 * time.Second
	removeLook     = 50 * time.Millisecond
)

// Remove ends all that runs on a host, removes what was put there and forgets it.
// It waits for that, within 30 s: a host that can't be reached is removed as soon
// as it can be, or forgotten at once by force.
func (s *Hosts) Remove(ctx context.Context, by core.Caller, name string, force bool) error {
	if on := s.on(by.Tenant, name); len(on) > 0 {
		return core.Errorf(core.Conflict, "host %s: agents have their place there: %s; delete them first", name, strings.Join(on[:min(len(on), 10)], ", ")).With("field", "name")
	}
	if force {
		if err := s.kind.ByOperator(ctx, by, name); err != nil {
			return err
		}
		return s.drop(ctx, by, name, "host.forgotten")
	}
	if _, err := s.set(ctx, by, name, "host.removing", func(h *Host) error {
		h.Removing = true
		return nil
	}); err != nil {
		return err
	}
	wait, stop := context.WithTimeout(ctx, removePatience)
	defer stop()
	for {
		_, err := s.kind.Get(wait, by.Tenant, name)
		if errors.Is(err, core.Kind(core.NotFound)) {
			return nil
		}
		if wait.Err() != nil {
			why := s.link(by.Tenant, name).Reason
			if why != "" {
				why = ": " + why
			}
			return core.Errorf(core.Unavailable, "host %s is not removed yet%s; it is as soon as it can be reached, or say --force to forget it", name, why)
		}
		if err != nil {
			return err
		}
		core.Within(wait.Done(), removeLook)
	}
}

func leaving(name string) error {
	return core.Errorf(core.Conflict, "host %s is being removed", name).With("field", "host")
}

// Takes reports why a host can't take an agent, which may be there already.
func (s *Hosts) Takes(ctx context.Context, tenant, name, agent string) error {
	h, err := s.kind.Get(ctx, tenant, name)
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	on := s.on(tenant, name)
	switch {
	case h.Removing:
		return leaving(name)
	case slices.Contains(on, agent):
		return nil
	case h.Draining:
		return core.Errorf(core.Conflict, "host %s is draining: it takes no more agents", name).With("field", "host")
	case len(on) >= h.Slots:
		return core.Errorf(core.Conflict, "host %s has its %d agents; host add with --slots gives it room for more", name, h.Slots).With("field", "host")
	}
	return nil
}

func (s *Hosts) on(tenant, name string) []string {
	if s.opt.Agents == nil {
		return nil
	}
	return s.opt.Agents(tenant, name)
}

func (s *Hosts) link(tenant, name string) Link {
	if s.opt.Driver == nil {
		return Link{State: Unlinked}
	}
	return s.opt.Driver.Link(tenant, name)
}

// List lists a tenant's hosts by name.
func (s *Hosts) List(ctx context.Context, tenant string) ([]Status, error) {
	found, err := s.kind.List(ctx, tenant)
	all := core.Map(found, func(h *Host) Status { return s.status(*h) })
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// Get is one host.
func (s *Hosts) Get(ctx context.Context, tenant, name string) (Status, error) {
	h, err := s.kind.Get(ctx, tenant, name)
	if err != nil {
		return Status{}, err
	}
	return s.status(*h), nil
}

// Shown is a host with how it is.
func (s *Hosts) Shown(h Host) Status { return s.status(h) }

func (s *Hosts) status(h Host) Status {
	st := Status{Host: h, Link: s.link(h.TenantID, h.Name), Agents: s.on(h.TenantID, h.Name)}
	if h.Removing {
		st.State = Leaving
	}
	return st
}
