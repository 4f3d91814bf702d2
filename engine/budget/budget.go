package budget

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
)

// Budget limits a subject: "tenant", "session:ID" or
// "agent:NAME". A zero limit is no limit. Reaching one stops claims and
// freezes the subject's running work until the approval it opens is answered:
// an approval grants the same amount once more, a denial ends what runs.
//
// With every grant on top its limits stay far from overflowing.
type Budget struct {
	TenantID   string    `json:"tenant_id"`
	Subject    string    `json:"subject"`
	Tokens     int64     `json:"tokens,omitzero" allow:"0-1000000000000 (0 is no limit)"`
	CostUSD    float64   `json:"cost_usd,omitzero" allow:"0-1000000000 (0 is no limit)"`
	Tasks      int64     `json:"tasks,omitzero" allow:"0-1000000000 (0 is no limit)"`
	WallS      int64     `json:"wall_s,omitzero" allow:"0-1000000000"`
	Granted    int64     `json:"granted,omitzero"` // how many times over, by approvals
	Used       Usage     `json:"used"`             // filled in when read
	Reached    string    `json:"reached,omitempty"`
	ApprovalID string    `json:"approval_id,omitempty"`
	Denied     bool      `json:"denied,omitzero"`
	UpdatedAt  time.Time `json:"updated_at"`
	AuditSeq   uint64    `json:"audit_seq,omitzero"`
}

// over names the limit that u goes past, "" for none.
func (b *Budget) over(u Usage) string {
	times := b.Granted + 1
	switch {
	case b.Tokens > 0 && u.Tokens >= b.Tokens*times:
		return "tokens"
	case b.CostUSD > 0 && u.CostUSD >= b.CostUSD*float64(times):
		return "cost"
	case b.WallS > 0 && u.WallMS >= b.WallS*1000*times:
		return "wall"
	case b.Tasks > 0 && u.Tasks > b.Tasks*times:
		return limitTasks
	}
	return ""
}

// Nearest names the limit that most is used of, and how much: from 1 on it is
// reached. Without limits it is "" and 0.
func (b *Budget) Nearest() (limit string, share float64) {
	times := float64(b.Granted + 1)
	for _, l := range []struct {
		name      string
		used, may float64
	}{
		{"tokens", float64(b.Used.Tokens), float64(b.Tokens)},
		{"cost", b.Used.CostUSD, b.CostUSD},
		{"wall", float64(b.Used.WallMS) / 1000, float64(b.WallS)},
		{limitTasks, float64(b.Used.Tasks), float64(b.Tasks)},
	} {
		if l.may > 0 && (limit == "" || l.used/(l.may*times) > share) {
			limit, share = l.name, l.used/(l.may*times)
		}
	}
	return limit, share
}

// Usage is what something spent; the bounds are those of what is added at once.
type Usage struct {
	Tokens  int64   `json:"tokens" allow:"0-1000000000000"`
	CostUSD float64 `json:"cost_usd" allow:"0-1000000"`
	Tasks   int64   `json:"tasks"`
	WallMS  int64   `json:"wall_ms"`
}

// unreadable is the limit of a budget that can't be read: it counts as used up.
const unreadable = "unreadable"

// limitTasks is the limit that no running work can go past.
const limitTasks = "tasks"

// Check reports the first limit that is out of its range, or an agent's name
// that none can have.
func (b *Budget) Check() error {
	if name, ok := strings.CutPrefix(b.Subject, "agent:"); ok && !core.IsAgent(name) {
		return core.Invalid("subject", b.Subject, "tenant, session:ID or agent:NAME")
	}
	return bound.Check(b)
}

// Set sets the limits of b.Subject; what it has used stays, an approval
// that was open about it is void. All limits zero removes the budget.
func (s *Budgets) Set(ctx context.Context, by core.Caller, b Budget) (Budget, error) {
	if err := b.Check(); err != nil {
		return b, err
	}
	if err := s.subject(ctx, by, &b); err != nil {
		return b, err
	}
	err := s.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error { return s.set(tx, &b) })
	if err != nil {
		return b, fmt.Errorf("set budget of %s: %w", b.Subject, err)
	}
	return b, nil
}

// Give sets the limits of an agent in the transaction that makes it.
func (s *Budgets) Give(tx *audit.Tx, b Budget) error {
	if err := b.Check(); err != nil {
		return err
	}
	return s.set(tx, &b)
}

func (s *Budgets) set(tx *audit.Tx, b *Budget) error {
	old, err := s.kind.Load(tx, b.Subject)
	if err != nil {
		return err
	}
	b.Granted, b.Reached, b.ApprovalID, b.Denied = 0, "", "", false
	if old != nil && old.ApprovalID != "" {
		if err := s.opt.Judge.Void(tx, func(a *judge.Approval) bool { return a.ApprovalID == old.ApprovalID }, "budget changed"); err != nil {
			return err
		}
	}
	if b.unlimited() {
		b.TenantID, b.UpdatedAt, b.Used = tx.Tenant(), tx.Now(), usage(tx, b.Subject)
		if old == nil {
			return nil
		}
		return s.kind.Remove(tx, record.Event{Type: "budget.removed"}, old)
	}
	b.Reached = b.over(usage(tx, b.Subject))
	return s.put(tx, old, b, "budget.set")
}

// subject resolves the name of a session in the subject of b.
func (s *Budgets) subject(ctx context.Context, by core.Caller, b *Budget) error {
	kind, name, _ := strings.Cut(b.Subject, ":")
	switch {
	case b.Subject == "tenant" || b.Subject == by.Tenant:
		b.Subject = "tenant"
	case kind == "session":
		id, err := s.opt.Sessions.ID(ctx, by, name)
		if err != nil {
			return err
		}
		b.Subject = "session:" + id
	case kind == "agent" && core.IsAgent(name):
		return s.agent(ctx, by, b, name)
	default:
		return core.Invalid("subject", b.Subject, "tenant, session:ID or agent:NAME")
	}
	return nil
}

// agent refuses to limit an agent that is not there; its budget may outlive it,
// and be removed.
func (s *Budgets) agent(ctx context.Context, by core.Caller, b *Budget, name string) error {
	switch a := s.opt.Agents; {
	case a == nil, a.Known(by.Tenant, name), b.unlimited() && s.held.Of(by.Tenant)[b.Subject] != nil:
		return nil
	case a.Elsewhere(by.Tenant, name):
		return s.opt.Ledger.Foreign(ctx, by, "agent", name, fmt.Errorf("agent %s: %w", name, core.ErrForeign))
	}
	return core.Missing("agent", name)
}

// unlimited says that a budget sets no limit: it is removed.
func (b *Budget) unlimited() bool {
	return b.Tokens == 0 && b.CostUSD == 0 && b.Tasks == 0 && b.WallS == 0
}

// put keeps a budget in place of old, which is nil for a new one.
func (s *Budgets) put(tx *audit.Tx, old, b *Budget, event string) error {
	b.Used = usage(tx, b.Subject)
	s.opt.Ledger.Hold(tx.Tenant(), countsOf(b.Subject)...) // from this change on
	for _, name := range countsOf(b.Subject) {
		tx.Add(name, 0) // and as it is now
	}
	return s.kind.Save(tx, record.Event{
		Type: event, Detail: map[string]any{"tokens": b.Tokens, "cost_usd": b.CostUSD, "tasks": b.Tasks, "wall_s": b.WallS},
	}, old, b)
}

// List lists a tenant's budgets with what is used, from memory. Those that can't
// be read are left out; Read told of them.
func (s *Budgets) List(ctx context.Context, tenant string) ([]Budget, error) {
	held := s.held.Of(tenant)
	if len(held) == 0 {
		return nil, nil
	}
	c, err := s.opt.Ledger.Counts(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	var all []Budget
	for _, name := range slices.Sorted(maps.Keys(held)) {
		_, there := c[countUse("tokens", name)] // else it was removed just now
		if b := *held[name]; there && b.Reached != unreadable {
			b.Used = s.shown(c, tenant, name)
			all = append(all, b)
		}
	}
	return all, nil
}

// component is what troubles with budgets are told under: the tasks', which
// they hold up.
const component = "tasks"
