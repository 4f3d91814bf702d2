package swarm

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
)

// Budget limits a subject (contract 1.13): "tenant", "session:ID" or
// "agent:NAME". A zero limit is no limit. Reaching one stops claims and
// freezes the subject's running work until the approval it opens is answered:
// an approval grants the same amount once more, a denial ends what runs.
type Budget struct {
	TenantID   string    `json:"tenant_id"`
	Subject    string    `json:"subject"`
	Tokens     int64     `json:"tokens,omitzero"`
	CostUSD    float64   `json:"cost_usd,omitzero"`
	Tasks      int64     `json:"tasks,omitzero"`
	WallS      int64     `json:"wall_s,omitzero"`
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

// subjects are the budgets that a task draws on.
func (l lane) subjects() iter.Seq[string] {
	return func(yield func(string) bool) {
		_ = yield("tenant") && (l.session == "" || yield("session:"+l.session)) && (l.agent == "" || yield("agent:"+l.agent))
	}
}

// spent reports whether a used-up budget closes a lane and stops its running
// work. One on the number of tasks does neither: it holds new ones one by one.
func (w *world) spent(l lane) bool {
	if len(w.budgets) == 0 {
		return false
	}
	for subject := range l.subjects() {
		if b := w.budgets[subject]; b != nil && b.Reached != "" && b.Reached != limitTasks {
			return true
		}
	}
	return false
}

// reached names the first used-up budget of a lane.
func (w *world) reached(l lane) string {
	if len(w.budgets) == 0 {
		return ""
	}
	for subject := range l.subjects() {
		if b := w.budgets[subject]; b != nil && b.Reached != "" {
			return subject
		}
	}
	return ""
}

// unreadable is the limit of a budget that can't be read: it counts as used up.
const unreadable = "unreadable"

// limitTasks is the limit that no running work can go past.
const limitTasks = "tasks"

// Bounds of a budget's limits: with every grant on top they stay far from
// overflowing.
const (
	maxTokens = 1_000_000_000_000
	maxCost   = 1_000_000_000 // dollars
	maxTasks  = 1_000_000_000
	maxWallS  = 1_000_000_000
)

// Check reports the first limit that is out of its range, or an agent's name
// that none can have.
func (b *Budget) Check() error {
	if name, ok := strings.CutPrefix(b.Subject, "agent:"); ok && !core.IsAgent(name) {
		return core.Invalid("subject", b.Subject, "tenant, session:ID or agent:NAME")
	}
	for _, f := range []struct {
		field string
		v     float64
		most  float64
	}{
		{"tokens", float64(b.Tokens), maxTokens},
		{"cost_usd", b.CostUSD, maxCost},
		{"tasks", float64(b.Tasks), maxTasks},
		{"wall_s", float64(b.WallS), maxWallS},
	} {
		if !(f.v >= 0 && f.v <= f.most) { // NaN is neither
			return core.Invalid(f.field, f.v, fmt.Sprintf("0 (no limit) to %.0f", f.most))
		}
	}
	return nil
}

// SetBudget sets the limits of b.Subject; what it has used stays, an approval
// that was open about it is void. All limits zero removes the budget.
func (s *Swarm) SetBudget(ctx context.Context, by core.Caller, b Budget) (Budget, error) {
	if err := b.Check(); err != nil {
		return b, err
	}
	if err := s.checkSubject(ctx, by, &b); err != nil {
		return b, err
	}
	err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.budgets.Load(tx, b.Subject)
		if err != nil {
			return err
		}
		b.Granted, b.Reached, b.ApprovalID, b.Denied = 0, "", "", false
		if old != nil && old.ApprovalID != "" {
			if err := s.judge.Void(tx, func(a *judge.Approval) bool { return a.ApprovalID == old.ApprovalID }, "budget changed"); err != nil {
				return err
			}
		}
		if b.Tokens == 0 && b.CostUSD == 0 && b.Tasks == 0 && b.WallS == 0 {
			b.TenantID, b.UpdatedAt, b.Used = tx.Tenant(), tx.Now(), usage(tx, b.Subject)
			if old == nil {
				return nil
			}
			return s.budgets.Remove(tx, record.Event{Type: "budget.removed"}, old)
		}
		b.Reached = b.over(usage(tx, b.Subject))
		return s.putBudget(tx, old, &b, "budget.set")
	})
	if err != nil {
		return b, fmt.Errorf("set budget of %s: %w", b.Subject, err)
	}
	return b, nil
}

func (s *Swarm) checkSubject(ctx context.Context, by core.Caller, b *Budget) error {
	kind, name, _ := strings.Cut(b.Subject, ":")
	switch {
	case b.Subject == "tenant" || b.Subject == by.Tenant:
		b.Subject = "tenant"
	case kind == "session":
		id, err := s.Sessions.ID(ctx, by, name)
		if err != nil {
			return err
		}
		b.Subject = "session:" + id
	case kind == "agent" && core.IsAgent(name):
	default:
		return core.Invalid("subject", b.Subject, "tenant, session:ID or agent:NAME")
	}
	return nil
}

func (s *Swarm) budgetKind() record.Kind[Budget] {
	return record.Kind[Budget]{
		Noun: "budget", Bucket: bBudget, Ledger: s.ledger, Follow: s.budgetChanged,
		Unread: func(tenant, subject string) {
			s.budgetChanged(tenant, subject, &Budget{TenantID: tenant, Subject: subject, Reached: unreadable})
		},
		ID: func(b *Budget) string { return b.Subject },
		Head: func(b *Budget) record.Head {
			return record.Head{Tenant: &b.TenantID, Updated: &b.UpdatedAt, Seq: &b.AuditSeq}
		},
		State: func(b *Budget) any { return map[string]any{"reached": b.Reached, "granted": b.Granted} },
	}
}

// putBudget keeps a budget in place of old, which is nil for a new one.
func (s *Swarm) putBudget(tx *audit.Tx, old, b *Budget, event string) error {
	b.Used = usage(tx, b.Subject)
	return s.budgets.Save(tx, record.Event{
		Type: event, Detail: map[string]any{"tokens": b.Tokens, "cost_usd": b.CostUSD, "tasks": b.Tasks, "wall_s": b.WallS},
	}, old, b)
}

// budgetChanged takes a budget over, as it is on disk; nil was removed.
func (s *Swarm) budgetChanged(tenant, subject string, b *Budget) {
	s.mu.Lock()
	w := s.keep(tenant)
	if w.budgets[subject] = b; b == nil {
		delete(w.budgets, subject)
	}
	delete(w.short, subject)
	s.mu.Unlock()
	s.poke(tenant)
}

// Budgets lists a tenant's budgets with what is used. Those that can't be read
// are left out and told of.
func (s *Swarm) Budgets(ctx context.Context, tenant string) ([]Budget, error) {
	var all []Budget
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return s.budgets.Each(tx, func(b *Budget) error {
			b.Used = usage(tx, b.Subject)
			all = append(all, *b)
			return nil
		})
	})
	if len(core.DamagedIn(err)) > 0 {
		s.opt.Health.Report(tenant, component, "", err)
		return all, nil
	}
	if err != nil {
		return all, fmt.Errorf("list budgets: %w", err)
	}
	return all, nil
}
