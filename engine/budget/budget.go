package budget

import (
	"strings"
	"time"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
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
