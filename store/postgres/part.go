package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"swarmdeck/store"
)

// Part is what one engine sees of a database that several engines of a process share:
// one tenant, which is worked on, while the others are only looked at. Once the tenant was
// given up it is over: what its engine has in memory is not so any more.
type Part struct {
	*DB
	only string
	t    *tenant // the tenant; nil before it was asked for. DB.mu guards it

	mu   sync.Mutex
	made map[string]bool // tenants that were made by it, which it may write to until it is closed
	heir string
}

// Part gives the part of a tenant, which need not be there yet. It is taken when it is
// first asked for. Closing the part gives it up; the database stays open.
func (db *DB) Part(tenant string) *Part { return &Part{DB: db, only: tenant, made: map[string]bool{}} }

// Bequeath names the engine that is to get the tenant when the part is closed.
func (p *Part) Bequeath(engine string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heir = engine
}

func (p *Part) CreateTenant(ctx context.Context, tenant string) error {
	err := p.DB.CreateTenant(ctx, tenant)
	if err == nil || errors.Is(err, store.ErrTenantExists) { // made halfway perhaps
		p.mu.Lock()
		defer p.mu.Unlock()
		p.made[tenant] = true
	}
	return err
}

func (p *Part) has(tenant string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return tenant == p.only || p.made[tenant]
}

func (p *Part) Here(ctx context.Context) ([]string, error) {
	p.DB.mu.Lock()
	t := p.tenants[p.only]
	p.DB.mu.Unlock()
	if t != nil && t.fatal() == nil && p.hosted(p.only) == "" {
		return []string{p.only}, nil
	}
	mark, there, err := p.markOf(ctx, p.only)
	if err != nil || !there || mark != "" {
		return nil, err
	}
	return []string{p.only}, nil
}

// own gives a tenant that the part may write to, unless another part of this process
// works on it.
func (p *Part) own(ctx context.Context, name string) (*tenant, error) {
	p.DB.mu.Lock()
	t := p.t
	p.DB.mu.Unlock()
	if t != nil && name == p.only {
		return t, nil
	}
	t, err := p.tenant(ctx, name)
	if err != nil {
		return nil, err
	}
	p.DB.mu.Lock()
	defer p.DB.mu.Unlock()
	if t.part == nil && name == p.only {
		t.part, p.t = p, t
	}
	if t.part != nil && t.part != p {
		return nil, &heldError{p.Name(), name, "another engine of this process"}
	}
	return t, nil
}

func (p *Part) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	if !p.has(tenant) {
		return fmt.Errorf("tenant %.80q: %w: this engine has %.80q alone", tenant, store.ErrLocked, p.only)
	}
	if err := p.mayUpdate(ctx); err != nil {
		return err
	}
	t, err := p.own(ctx, tenant)
	if err != nil {
		return err
	}
	return t.update(ctx, fn)
}

func (p *Part) View(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	enter := p.look
	if tenant == p.only && !p.opt.ReadOnly {
		enter = func(ctx context.Context, name string) (*moment, error) {
			t, err := p.own(ctx, name)
			if err != nil {
				return nil, err
			}
			return t.enter(ctx)
		}
	}
	m, err := enter(ctx, tenant)
	if err != nil {
		return err
	}
	defer m.leave()
	return m.view(ctx, tenant, fn)
}

// Close gives the tenant up, and those that it made and no other part works on.
func (p *Part) Close() error {
	p.mu.Lock()
	made, heir := slices.Collect(maps.Keys(p.made)), p.heir
	p.mu.Unlock()
	var errs []error
	for _, tenant := range made {
		if tenant != p.only {
			errs = append(errs, p.give(tenant, ""))
		}
	}
	return errors.Join(append(errs, p.give(p.only, heir))...)
}

func (p *Part) give(name, to string) error {
	p.DB.mu.Lock()
	t := p.tenants[name]
	others := t != nil && t.part != nil && t.part != p
	p.DB.mu.Unlock()
	if others {
		return nil
	}
	return p.Give(name, to)
}

// Take makes a tenant this engine's, or says with ErrLocked who has it. It does not
// wait.
func (db *DB) Take(ctx context.Context, tenant string) error {
	db.opening.Lock()
	defer db.opening.Unlock()
	db.mu.Lock()
	t, err := db.tenants[tenant], db.over
	db.mu.Unlock()
	if err != nil || t != nil && t.fatal() == nil {
		return err
	}
	db.forget(tenant)
	if t, err = db.attempt(ctx, tenant); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.tenants[tenant] = t
	return nil
}

// Give commits what was accepted of a tenant and gives it up, to one engine or, with
// "", to whoever comes. Who got it and does not take it within a lease has lost it again.
func (db *DB) Give(tenant, to string) error {
	db.opening.Lock()
	defer db.opening.Unlock()
	db.mu.Lock()
	t := db.tenants[tenant]
	delete(db.tenants, tenant)
	db.mu.Unlock()
	if t == nil {
		return nil
	}
	t.handed.Store(true)
	t.queue.Close(store.ErrClosed)
	<-t.stopped
	if err := t.fatal(); err != nil {
		return nil //nolint:nilerr // it is not ours to give any more, as its users know
	}
	t.fail(store.ErrClosed)
	t.release(to)
	return nil
}
