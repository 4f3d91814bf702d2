//go:build linux

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/fleet"
	"swarmdeck/store/postgres"
	"swarmdeck/ui/command"
)

// shareEvery is how often an engine looks for tenants that nobody has: who stops hands
// them over, and no command is to wait for a second.
const shareEvery = 250 * time.Millisecond

// self is this process, as other engines are to know it.
func self() postgres.Engine {
	return postgres.Engine{Host: command.Machine(), Version: programVersion()}
}

// self is this process with the key that it signs by.
func (d *deck) self() postgres.Engine {
	me := self()
	me.Signer = d.sealer.Public()
	return me
}

// share takes tenants that no engine has, and hands some over to an engine that has
// fewer, until ctx ends.
func (d *deck) share(ctx context.Context) {
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		engines, owned, err := d.base.Engines(ctx)
		if err != nil {
			continue // the lease tells when that lasts
		}
		d.note(engines, owned)
		d.recover(owned)
		d.lookAtKeys(ctx, engines, owned)
		engines = d.signing.able(engines, owned)
		rests := func(tenant string) bool { return d.retakes.rests(tenant) || !d.signs(tenant) }
		s := shareOf(d.base.Engine(), engines, owned, rests)
		take := slices.Concat(s.take, d.without(s.mine), slices.DeleteFunc(d.signing.left(owned, time.Now()), rests))
		for i, tenant := range take {
			if ctx.Err() == nil && !slices.Contains(take[:i], tenant) {
				d.admit(ctx, tenant)
			}
		}
		if i := slices.IndexFunc(engines, func(e postgres.Engine) bool { return e.Name == s.to }); i >= 0 {
			d.hand(s.mine, engines[i])
		}
	}
}

// without are those of our tenants that no engine works on: a command just made them.
func (d *deck) without(mine []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(mine), func(tenant string) bool { return d.houses[tenant] != nil || d.retakes.rests(tenant) })
}

// admit opens the engine of a tenant that nobody has. What fails is tried again after a
// pause, and is a trouble of the engines here until then; that another was faster is none.
func (d *deck) admit(ctx context.Context, tenant string) {
	need := d.at
	need.Tenant, need.NoWait = tenant, true
	_, err := d.engine(ctx, need, false)
	switch {
	case errors.As(err, new(takenError)) || ctx.Err() != nil:
		d.troubled(tenant, nil)
	case errors.As(err, new(*audit.UntrustedError)):
		d.untrusted(tenant, err)
	case err != nil:
		d.resting(tenant, err)
	default:
		d.retakes.opened(tenant)
		d.troubled(tenant, nil)
	}
}

// resting has a tenant whose engine failed wait, and says until when.
func (d *deck) resting(tenant string, err error) {
	next := d.retakes.failed(tenant)
	d.troubled(tenant, fmt.Errorf("taken again at %s: %w", next.UTC().Format(time.TimeOnly+"Z"), err))
}

// recover ends the troubles of tenants that another engine has taken.
func (d *deck) recover(owned []postgres.Owned) {
	others := map[string]bool{}
	for _, o := range owned {
		others[o.Tenant] = !o.Free && o.Engine != d.base.Engine()
	}
	for _, tenant := range d.retakes.forget(func(tenant string) bool { return others[tenant] }) {
		d.troubled(tenant, nil)
	}
}

// troubled has the engines here know that a tenant has none, or, with nil, that it is
// over.
func (d *deck) troubled(tenant string, err error) { d.tell(tenant, "engine", err) }

// tell has one of the engines here say what is wrong with a part of a tenant or, with nil,
// none any more.
func (d *deck) tell(tenant, component string, err error) {
	for i, eng := range d.All() {
		if err == nil {
			eng.Health.Clear(tenant, component, "")
		} else if i == 0 {
			eng.Health.Report(tenant, component, "", err)
		}
	}
}

// hand gives one tenant to another engine: one whose work is not at this machine now, and
// whose log takes what that engine signs.
func (d *deck) hand(mine []string, to postgres.Engine) {
	d.opening.Lock()
	defer d.opening.Unlock()
	for _, tenant := range mine {
		d.mu.Lock()
		h, named := d.houses[tenant], d.named[tenant]
		d.mu.Unlock()
		if h == nil || named {
			continue
		}
		if may, known := d.signing.may(tenant, to.Signer); to.Signer != "" && to.Signer != d.sealer.Public() && (!may || !known) {
			continue
		}
		if eng, err := h.working(); err == nil && idle(eng.Snapshot(tenant)) {
			_ = d.leave(h, to.Name)
			return
		}
	}
}

// idle says that nothing of a tenant runs, no agent has its place here, and nobody looks
// at its cockpit, which shows this engine.
func idle(s *engine.Snapshot) bool {
	for _, a := range s.Agents {
		if !a.Stopped && a.Status != fleet.Offline && a.Status != fleet.Failed {
			return false
		}
	}
	return s.Counts.ByStatus["running"] == 0 && len(s.Visitors) == 0
}

// plan is what one engine is to do for an even share.
type plan struct {
	take []string // tenants that nobody has
	mine []string // of which one goes to an engine that has fewer
	to   string   // that engine; "" is none
}

// shareOf plans the share of one engine: as many tenants as any other, or one more. Where
// some let others in, those share them: a tenant of a cockpit's engine is out of reach
// elsewhere. What rests is not taken.
func shareOf(me string, engines []postgres.Engine, owned []postgres.Owned, rests func(tenant string) bool) (p plan) {
	engines = slices.DeleteFunc(slices.Clone(engines), func(e postgres.Engine) bool { return !e.Live || e.Visits() })
	if open := slices.DeleteFunc(slices.Clone(engines), func(e postgres.Engine) bool { return e.Address == "" }); len(open) > 0 {
		engines = open
	}
	has := map[string]int{}
	for _, e := range engines {
		has[e.Name] = 0
	}
	_, shares := has[me]
	if len(has) == 0 { // nobody is seen, as where the database stood still
		has[me], shares = 0, true
	}
	var free []string
	for _, o := range owned {
		_, there := has[o.Engine]
		switch {
		case o.Free:
			free = append(free, o.Tenant)
		case o.Engine == me:
			p.mine = append(p.mine, o.Tenant)
			fallthrough
		case there:
			if there {
				has[o.Engine]++
			}
		}
	}
	if !shares {
		if len(p.mine) > 0 {
			p.to = slices.MinFunc(engines, func(a, b postgres.Engine) int { return has[a.Name] - has[b.Name] }).Name
		}
		return p
	}
	least := len(owned) / len(has)
	most := (len(owned) + len(has) - 1) / len(has)
	free = slices.DeleteFunc(free, rests)
	p.take = free[:min(len(free), max(0, most-has[me]))]
	for _, e := range engines {
		if n := has[e.Name]; e.Name != me && len(free) == 0 && n < has[me]-1 && (n < least || has[me] > most) {
			p.to = e.Name
			break
		}
	}
	return p
}

var _ command.Engines = (*deck)(nil)
