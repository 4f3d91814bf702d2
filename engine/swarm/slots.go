package swarm

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

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
