package swarm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Tenant is a strict isolation boundary (model 1).
type Tenant struct {
	TenantID  string    `json:"tenant_id"`
	CreatedAt time.Time `json:"created_at"`
}

// CreateTenant adds a tenant. by.Tenant is ignored.
func (s *damage) CreateTenant(ctx context.Context, by core.Caller, id string) (Tenant, error) {
	if err := core.CheckTenant(id); err != nil {
		return Tenant{}, err
	}
	// A crash between the bucket and its record leaves a tenant without one, which is
	// written now.
	if err := s.store.CreateTenant(ctx, id); err != nil && !errors.Is(err, store.ErrTenantExists) {
		return Tenant{}, fmt.Errorf("create tenant %s: %w", id, err)
	}
	t := Tenant{TenantID: id}
	by.Tenant = id
	err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if _, there, err := tenants.Get(tx, tenantKey); err != nil {
			return err
		} else if there {
			return core.Errorf(core.Conflict, "tenant %q exists already", id).With("field", "tenant_id")
		}
		t.CreatedAt = tx.Now()
		if _, err := tx.Record(audit.Entry{Type: "tenant.created", Subject: "tenant", ID: id}); err != nil {
			return err
		}
		tx.Changed("tenant", id)
		tx.OnCommit(func() { s.tenantAdded(id) })
		return tenants.Put(tx, tenantKey, t)
	})
	return t, err
}

// Tenant returns one tenant.
func (s *damage) Tenant(ctx context.Context, id string) (Tenant, error) {
	if err := core.CheckTenant(id); err != nil {
		return Tenant{}, err
	}
	var t Tenant
	err := s.ledger.View(ctx, id, func(tx *audit.Tx) (err error) {
		there := false
		if t, there, err = tenants.Get(tx, tenantKey); err == nil && !there {
			err = core.Missing("tenant", id)
		}
		return err
	})
	if errors.Is(err, store.ErrNoTenant) {
		return Tenant{}, core.Missing("tenant", id)
	}
	return t, err
}

// Here lists the ids of those that are worked on here, as store.Store has it.
func (s *shared) Here(ctx context.Context) ([]string, error) {
	ids, err := s.store.Here(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	return ids, nil
}

// Tenants lists the tenants by id, those of other engines too.
func (s *damage) Tenants(ctx context.Context) ([]Tenant, error) {
	ids, err := s.store.Tenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	out := make([]Tenant, 0, len(ids))
	for _, id := range ids {
		t, err := s.Tenant(ctx, id)
		if errors.Is(err, core.Kind(core.NotFound)) {
			continue // created halfway; CreateTenant completes it
		}
		if len(core.DamagedIn(err)) > 0 { // all else of it may be well
			s.opt.Health.Report(id, component, "", err)
			t, err = Tenant{TenantID: id}, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
