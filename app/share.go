//go:build linux

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/view"
	"swarmdeck/store/postgres"
	"swarmdeck/ui/command"
)

// shareEvery is how often an engine looks for tenants that nobody has: who stops hands
// them over, and no command is to wait for a second. It also looks when a lease ends, and
// leaseOver later, or it would find it by a hair.
const (
	shareEvery = 250 * time.Millisecond
	leaseOver  = 2 * time.Millisecond
)

// self is this process, as other engines are to know it.
func self() postgres.Engine {
	return postgres.Engine{Host: command.Machine(), Version: programVersion()}
}

// self is this process with the key that it signs by.
func (d *engines) self() postgres.Engine {
	me := self()
	me.Signer = d.sealer.Public()
	return me
}

// share takes tenants that no engine has, and hands some over to an engine that has
// fewer, until ctx ends.
func (d *engines) share(ctx context.Context) {
	look := time.NewTimer(shareEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		began := time.Now()
		engines, owned, err := d.base.Engines(ctx)
		look.Reset(nextLook(d.base.Engine(), owned) - time.Since(began))
		if err != nil {
			continue // the lease tells when that lasts
		}
		d.note(engines, owned)
		d.recover(owned)
		d.lookAtKeys(ctx, engines, owned)
		engines = d.signing.able(engines, owned)
		rests := func(tenant string) bool { return d.retakes.rests(tenant) || !d.signs(tenant) }
		s := shareOf(d.base.Engine(), engines, owned, rests)
		d.admit(ctx, slices.Concat(s.take, d.without(s.mine), slices.DeleteFunc(d.signing.left(owned, time.Now()), rests)))
		d.hand(s.give, engines)
	}
}

// nextLook is how long after a look at who has what an engine looks again.
func nextLook(me string, owned []postgres.Owned) time.Duration {
	next := shareEvery
	for _, o := range owned {
		if !o.Free && o.Engine != me {
			next = min(next, o.Left+leaseOver)
		}
	}
	return next
}

// without are those of our tenants that no engine works on: a command just made them.
func (d *engines) without(mine []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(mine), func(tenant string) bool { return d.instances[tenant] != nil || d.retakes.rests(tenant) })
}

// admitAtOnce is how many engines are opened side by side when another has left its
// tenants: each waits for the database several times.
const admitAtOnce = 4

// admit opens the engines of tenants that nobody has.
func (d *engines) admit(ctx context.Context, tenants []string) {
	slices.Sort(tenants)
	next := make(chan string)
	var all sync.WaitGroup
	for range min(admitAtOnce, len(tenants)) {
		all.Go(func() {
			for tenant := range next {
				d.admitOne(ctx, tenant)
			}
		})
	}
	for _, tenant := range slices.Compact(tenants) {
		if ctx.Err() == nil {
			next <- tenant
		}
	}
	close(next)
	all.Wait()
}

// admitOne opens the engine of a tenant. What fails is tried again after a pause, and is a
// trouble of the engines here until then; that another was faster is none.
func (d *engines) admitOne(ctx context.Context, tenant string) {
	d.mu.Lock()
	need := d.at
	d.mu.Unlock()
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
func (d *engines) resting(tenant string, err error) {
	next := d.retakes.failed(tenant)
	d.troubled(tenant, fmt.Errorf("taken again at %s: %w", next.UTC().Format(time.TimeOnly+"Z"), err))
}

// recover ends the troubles of tenants that another engine has taken.
func (d *engines) recover(owned []postgres.Owned) {
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
func (d *engines) troubled(tenant string, err error) { d.tell(tenant, "engine", err) }

// tell has one of the engines here say what is wrong with a part of a tenant or, with nil,
// none any more.
func (d *engines) tell(tenant, component string, err error) {
	for i, eng := range d.All() {
		if err == nil {
			eng.Health.Clear(tenant, component, "")
		} else if i == 0 {
			eng.Health.Report(tenant, component, "", err)
		}
	}
}

// hand gives one tenant to another engine: one whose work is not at this machine now,
// whose log takes what that engine signs, and that did not just come back from it.
func (d *engines) hand(gifts []gift, engines []postgres.Engine) {
	d.given.forget(engines)
	for _, g := range gifts {
		if !d.given.rests(g) && d.handOne(g, engines) {
			d.given.note(g)
			return
		}
	}
}

func (d *engines) handOne(g gift, engines []postgres.Engine) bool {
	defer d.turn(g.tenant)()
	i := slices.IndexFunc(engines, func(e postgres.Engine) bool { return e.Name == g.to })
	d.mu.Lock()
	h, named := d.instances[g.tenant], d.named[g.tenant]
	d.mu.Unlock()
	if h == nil || named || i < 0 {
		return false
	}
	if signer := engines[i].Signer; signer != "" && signer != d.sealer.Public() {
		if may, known := d.signing.may(g.tenant, signer); !may || !known {
			return false
		}
	}
	eng, err := h.working()
	if err != nil || !idle(eng.Snapshot(g.tenant)) {
		return false
	}
	_ = d.leave(h, g.to)
	return true
}

// idle says that nothing of a tenant runs, no agent has its place here, and nobody looks
// at its cockpit, which shows this engine.
func idle(s *view.Snapshot) bool {
	for _, a := range s.Agents {
		if !a.Stopped && a.Status != fleet.Offline && a.Status != fleet.Failed {
			return false
		}
	}
	return s.Counts.ByStatus["running"] == 0 && len(s.Visitors) == 0
}

var _ command.Engines = (*engines)(nil)

// plan is what one engine is to do for its share.
type plan struct {
	take []string // tenants that nobody has
	mine []string
	give []gift // of which the first one that can go goes
}

// gift is a tenant that another engine is to have.
type gift struct{ tenant, to string }

// shareOf plans the share of one engine: each has as many tenants as any other, or one
// more. Where some engines let others in, those share all: a tenant of a cockpit's engine
// is out of reach elsewhere. What rests is not taken.
//
// Each gift brings the shares nearer to each other: engines that plan by what is so come
// to an end.
func shareOf(me string, engines []postgres.Engine, owned []postgres.Owned, rests func(tenant string) bool) (p plan) {
	engines = slices.DeleteFunc(slices.Clone(engines), func(e postgres.Engine) bool {
		return !e.Live && e.Name != me || e.Draining || e.Visits() // who plans is there, seen or not
	})
	if open := slices.DeleteFunc(slices.Clone(engines), func(e postgres.Engine) bool { return e.Address == "" }); len(open) > 0 {
		engines = open
	}
	if len(engines) == 0 { // it has not joined, and no other is seen
		engines = []postgres.Engine{{Name: me}}
	}
	has := map[string]int{}
	var free []string
	for _, o := range owned {
		switch {
		case o.Free:
			free = append(free, o.Tenant)
			continue
		case o.Engine == me:
			p.mine = append(p.mine, o.Tenant)
		}
		has[o.Engine]++
	}
	shares := slices.ContainsFunc(engines, func(e postgres.Engine) bool { return e.Name == me })
	free = slices.DeleteFunc(free, rests)
	if shares {
		most := (len(owned) + len(engines) - 1) / len(engines)
		p.take = free[:min(len(free), max(0, most-has[me]))]
	}
	to := slices.MinFunc(engines, func(a, b postgres.Engine) int { return has[a.Name] - has[b.Name] }).Name
	if to == me || shares && (len(free) > 0 || has[to] >= has[me]-1) {
		return p
	}
	for _, tenant := range p.mine {
		p.give = append(p.give, gift{tenant, to})
	}
	return p
}
