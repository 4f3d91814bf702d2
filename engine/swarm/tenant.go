package swarm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
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

// MaxSlots bounds how many tasks run at once.
const MaxSlots = 10_000

// CheckSlots refuses a number of slots that can't be.
func CheckSlots(field string, n int) error {
	if n < 1 || n > MaxSlots {
		return core.Invalid(field, n, fmt.Sprint("1-", MaxSlots))
	}
	return nil
}

// Slots say how many tasks of a tenant run at once that go to no agent. A tenant
// that has none of its own shares the engine's with the others that have none.
type Slots struct {
	TenantID  string    `json:"tenant_id"`
	Slots     int       `json:"slots"`
	Own       bool      `json:"own"` // else they are the engine's. Not stored.
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`
}

func (s *slotting) slotKind() record.Table[Slots] {
	return &record.Kind[*Slots]{
		Noun: "slots", Bucket: "slots", Ledger: s.ledger,
		Follow: func(tenant, id string, now *Slots) {
			s.slots.Follow(tenant, id, now)
			s.ring()
		},
		ID:    func(n *Slots) string { return n.TenantID },
		Whole: true,
	}
}

// SetSlots gives a tenant slots of its own, and says what that did: created,
// changed or unchanged. What runs goes on.
func (s *slotting) SetSlots(ctx context.Context, by core.Caller, n int) (_ Slots, action string, err error) {
	if err := CheckSlots("slots", n); err != nil {
		return Slots{}, "", err
	}
	if err := s.slotted.ByOperator(ctx, by, by.Tenant); err != nil {
		return Slots{}, "", err
	}
	now := Slots{TenantID: by.Tenant, Slots: n}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		action, err = s.slotted.Put(tx, record.Event{}, &now, nil)
		return err
	})
	if err != nil {
		return Slots{}, "", fmt.Errorf("set the slots of %s: %w", by.Tenant, err)
	}
	now.Own = true
	return now, action, nil
}

// ShareSlots has a tenant share the engine's slots again.
func (s *slotting) ShareSlots(ctx context.Context, by core.Caller) (Slots, error) {
	if err := s.slotted.ByOperator(ctx, by, by.Tenant); err != nil {
		return Slots{}, err
	}
	if s.slots.Get(by.Tenant, by.Tenant) != nil {
		if _, err := s.slotted.Delete(ctx, by, "slots.deleted", by.Tenant); err != nil {
			return Slots{}, err
		}
	}
	return s.SlotsOf(by.Tenant), nil
}

// SlotsOf are those that a tenant's tasks run in.
func (s *slotting) SlotsOf(tenant string) Slots {
	if own := s.slots.Get(tenant, tenant); own != nil {
		n := *own
		n.Own = true
		return n
	}
	return Slots{TenantID: tenant, Slots: s.opt.Slots}
}

// pool names the slots that a tenant's tasks run in: its own, or "" for the
// engine's.
func (s *slotting) pool(tenant string) string {
	if s.slots.Get(tenant, tenant) != nil {
		return tenant
	}
	return ""
}

// slotsLeft counts the free slots for a tenant's tasks that go to no agent; it is
// less than none where there were more before.
func (s *slotting) slotsLeft(tenant string) int {
	pool := s.pool(tenant)
	left := s.SlotsOf(tenant).Slots
	s.mu.Lock()
	defer s.mu.Unlock()
	left -= s.handed[pool]
	for _, l := range s.leases {
		if l.agent == "" && l.local && s.pool(l.tenant) == pool {
			left--
		}
	}
	return left
}
