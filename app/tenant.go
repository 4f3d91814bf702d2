//go:build linux

package app

import (
	"context"
	"errors"
	"sync"

	"swarmdeck/engine"
	"swarmdeck/store"
	"swarmdeck/ui/command"
)

// turn has the engine of a tenant opened and closed by one at a time.
type turn struct {
	sync.Mutex
	wanted int // by how many, who has it included; engines.mu guards it
}

// turn waits until nobody else opens or closes the engine of a tenant.
func (d *engines) turn(tenant string) (end func()) {
	d.opening.RLock()
	d.mu.Lock()
	t := d.turns[tenant]
	if t == nil {
		t = &turn{}
		d.turns[tenant] = t
	}
	t.wanted++
	d.mu.Unlock()
	t.Lock()
	return func() {
		t.Unlock()
		d.mu.Lock()
		if t.wanted--; t.wanted == 0 { // any name may be asked for
			delete(d.turns, tenant)
		}
		d.mu.Unlock()
		d.opening.RUnlock()
	}
}

// only is the tenant of a database with one alone, else "".
func (d *engines) only(ctx context.Context) (string, error) {
	d.mu.Lock()
	base := d.base
	d.mu.Unlock()
	if base == nil {
		return "", store.ErrClosed
	}
	all, err := base.Tenants(ctx)
	if err != nil || len(all) != 1 {
		return "", err
	}
	return all[0], nil
}

// engineOf gives the engine of a tenant, or with "" the one that works on none.
func (d *engines) engineOf(ctx context.Context, need command.Need, mine bool) (*engine.Engine, error) {
	defer d.turn(need.Tenant)()
	if d.base == nil {
		return nil, store.ErrClosed
	}
	h, err := d.instance(ctx, need.Tenant)
	if err != nil {
		return nil, err
	}
	if mine && h.tenant != "" {
		d.mu.Lock()
		d.named[h.tenant] = true
		d.mu.Unlock()
	}
	if need.Active = need.Active && h.tenant != ""; !mine {
		need.Active = h.tenant != "" && d.at.Active
	}
	eng, err := h.open(ctx, need)
	if err != nil {
		return nil, errors.Join(err, d.leave(h, ""))
	}
	return eng, nil
}

// instance gives the place of an engine. It is the tenant's turn.
func (d *engines) instance(ctx context.Context, tenant string) (*instance, error) {
	d.mu.Lock()
	h := d.instances[tenant]
	d.mu.Unlock()
	if h != nil {
		return h, nil
	}
	if tenant != "" && !d.at.ReadOnly {
		err := d.maySign(ctx, tenant)
		if err == nil {
			err = d.base.Take(ctx, tenant)
		}
		switch {
		case errors.Is(err, store.ErrLocked) && !errors.As(err, new(takenError)):
			return nil, takenError{err, tenant}
		case err != nil:
			return nil, err
		}
	}
	h = &instance{machine: d.machine, tenant: tenant, sealer: d.sealer, place: d.place, lease: d.lease(tenant), cluster: d.cluster}
	h.failed = func(err error) { d.lost(tenant, err) }
	h.base, h.part = d.base, d.base.Part(tenant)
	if tenant == "" && d.at.ReadOnly { // it looks at all
		h.part = nil
	}
	d.mu.Lock()
	d.instances[tenant] = h
	d.mu.Unlock()
	return h, nil
}

// leave closes an engine and gives its tenant up, to another engine or to whoever
// comes. It is the tenant's turn, or the database is being closed.
func (d *engines) leave(h *instance, to string) error {
	d.mu.Lock()
	delete(d.instances, h.tenant)
	delete(d.leases, h.tenant)
	d.mu.Unlock()
	if eng, err := h.working(); err == nil {
		eng.Retire()
	}
	err := h.close()
	if h.part != nil {
		h.part.Bequeath(to)
		err = errors.Join(err, h.part.Close())
	}
	return err
}

// lost is told that the work on a tenant is over, which another engine has taken for
// example: what its engine here has in memory is past. Its cells stand still from before
// then until they are ended.
func (d *engines) lost(tenant string, why error) {
	d.mu.Lock()
	h, named := d.instances[tenant], d.named[tenant]
	d.mu.Unlock()
	if named {
		d.fail(stopped(why))
		return
	}
	if h == nil {
		return
	}
	d.drops.Go(func() {
		defer d.turn(tenant)()
		d.mu.Lock()
		now := d.instances[tenant]
		d.mu.Unlock()
		if now != h {
			return
		}
		if eng, err := h.working(); err == nil {
			eng.Health.Log().Warn("a tenant was given up", "tenant", tenant, "error", why)
		}
		_ = d.leave(h, "") // what is left of it is the next engine's to end
		if !errors.Is(why, store.ErrFenced) {
			d.resting(tenant, why)
		}
	})
}

// lease gives the lease that a tenant is worked on by.
func (d *engines) lease(tenant string) *lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.leases[tenant]
	if l == nil {
		l = &lease{}
		d.leases[tenant] = l
	}
	return l
}
