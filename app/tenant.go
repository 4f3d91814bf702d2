//go:build linux

package app

import (
	"context"
	"errors"

	"swarmdeck/store"
	"swarmdeck/ui/command"
)

// house gives the place of the engine for a need. A tenant that is not there, or is in
// another store, has the one that works on none, whose commands say so.
func (d *deck) house(ctx context.Context, need command.Need) (*house, error) {
	tenant := need.Tenant
	if tenant == "" && !need.Shared {
		all, err := d.base.Tenants(ctx)
		if err != nil {
			return nil, err
		}
		if len(all) == 1 {
			tenant = all[0]
		}
	}
	d.mu.Lock()
	h := d.houses[tenant]
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
		case errors.As(err, new(takenError)):
			return nil, err
		case errors.Is(err, store.ErrNoTenant), errors.As(err, new(*store.AwayError)):
			need.Tenant = ""
			if tenant = ""; d.houses[""] != nil {
				return d.houses[""], nil
			}
		case errors.Is(err, store.ErrLocked):
			return nil, takenError{err, tenant}
		case err != nil:
			return nil, err
		}
	}
	h = &house{machine: d.machine, tenant: tenant, sealer: d.sealer, lease: d.lease(tenant), cluster: d.cluster}
	h.failed = func(err error) { d.lost(tenant, err) }
	h.base, h.part = d.base, d.base.Part(tenant)
	if tenant == "" && d.at.ReadOnly { // it looks at all
		h.part = nil
	}
	d.mu.Lock()
	d.houses[tenant] = h
	d.mu.Unlock()
	return h, nil
}

// leave closes an engine and gives its tenant up, to another engine or to whoever
// comes. The caller holds opening.
func (d *deck) leave(h *house, to string) error {
	d.mu.Lock()
	delete(d.houses, h.tenant)
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
func (d *deck) lost(tenant string, why error) {
	d.mu.Lock()
	h, named := d.houses[tenant], d.named[tenant]
	d.mu.Unlock()
	if named {
		d.fail(stopped(why))
		return
	}
	if h == nil {
		return
	}
	d.drops.Go(func() {
		d.opening.Lock()
		defer d.opening.Unlock()
		if d.houses[tenant] != h {
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
func (d *deck) lease(tenant string) *lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.leases[tenant]
	if l == nil {
		l = &lease{}
		d.leases[tenant] = l
	}
	return l
}
