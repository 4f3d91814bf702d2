package swarm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// Usage is what something spent.
type Usage struct {
	Tokens  int64   `json:"tokens"`
	CostUSD float64 `json:"cost_usd"`
	Tasks   int64   `json:"tasks"`
	WallMS  int64   `json:"wall_ms"`
}

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

// Usage counters: cost is kept in millionths of a dollar.
func countUse(what, subject string) string { return "use." + what + "." + subject }

func usage(tx *audit.Tx, subject string) Usage {
	return Usage{
		Tokens:  tx.Counter(countUse("tokens", subject)),
		CostUSD: float64(tx.Counter(countUse("cost", subject))) / 1e6,
		Tasks:   tx.Counter(countUse("tasks", subject)),
		WallMS:  tx.Counter(countUse("wall", subject)),
	}
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
		return "tasks"
	}
	return ""
}

// subjects are the budgets that a task draws on.
func (l lane) subjects() []string {
	out := []string{"tenant"}
	if l.session != "" {
		out = append(out, "session:"+l.session)
	}
	if l.agent != "" {
		out = append(out, "agent:"+l.agent)
	}
	return out
}

// reached names the first used-up budget that closes a lane.
func (w *world) reached(l lane) string {
	if len(w.budgets) == 0 {
		return ""
	}
	for _, subject := range l.subjects() {
		if b := w.budgets[subject]; b != nil && b.Reached != "" {
			return subject
		}
	}
	return ""
}

// SetBudget sets the limits of b.Subject; what it has used stays. All limits
// zero removes the budget.
func (s *Swarm) SetBudget(ctx context.Context, by core.Caller, b Budget) (Budget, error) {
	if b.Tokens < 0 || b.Tasks < 0 || b.WallS < 0 || b.CostUSD < 0 || math.IsNaN(b.CostUSD) || b.CostUSD > 1e9 {
		return b, core.Errorf(core.InvalidInput, "budget: limits must be 0 (none) or more").With("field", "budget")
	}
	if err := s.checkSubject(ctx, by, &b); err != nil {
		return b, err
	}
	err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := readBudget(tx, b.Subject)
		if err != nil {
			return err
		}
		b.TenantID, b.AuditSeq, b.Granted, b.Reached, b.ApprovalID, b.Denied = by.Tenant, old.AuditSeq, 0, "", "", false
		if old.ApprovalID != "" {
			if err := s.judge.Void(tx, func(a *judge.Approval) bool { return a.ApprovalID == old.ApprovalID }, "budget changed"); err != nil {
				return err
			}
		}
		b.Reached = b.over(usage(tx, b.Subject))
		return s.putBudget(tx, &b, "budget.set")
	})
	if err != nil {
		return b, fmt.Errorf("set budget of %s: %w", b.Subject, err)
	}
	s.ring()
	return b, nil
}

func (s *Swarm) checkSubject(ctx context.Context, by core.Caller, b *Budget) error {
	kind, name, _ := strings.Cut(b.Subject, ":")
	switch {
	case b.Subject == "tenant" || b.Subject == by.Tenant:
		b.Subject = "tenant"
	case kind == "session":
		id, _, err := s.sessionSeq(ctx, by, name)
		if err != nil {
			return err
		}
		b.Subject = "session:" + id
	case kind == "agent" && agentPattern.MatchString(name):
	default:
		return core.Invalid("subject", b.Subject, "tenant, session:ID or agent:NAME")
	}
	return nil
}

func readBudget(tx *audit.Tx, subject string) (Budget, error) {
	var b Budget
	err := load(tx, bBudget, []byte(subject), "budget", subject, &b)
	if isCode(err, core.NotFound) {
		return Budget{TenantID: tx.Tenant(), Subject: subject}, nil
	}
	return b, err
}

func (s *Swarm) putBudget(tx *audit.Tx, b *Budget, event string) error {
	b.UpdatedAt = tx.Now()
	n, err := tx.Record(audit.Entry{
		Type: event, Subject: "budget", ID: b.Subject, Prev: b.AuditSeq,
		State:  core.MustEncode(map[string]any{"reached": b.Reached, "granted": b.Granted}),
		Detail: core.MustEncode(map[string]any{"tokens": b.Tokens, "cost_usd": b.CostUSD, "tasks": b.Tasks, "wall_s": b.WallS}),
	})
	if err != nil {
		return err
	}
	b.AuditSeq = n
	b.Used = usage(tx, b.Subject)
	c := *b
	tx.Changed("budget", b.Subject, &c)
	tx.OnCommit(func() {
		s.mu.Lock()
		s.world(c.TenantID).budgets[c.Subject] = &c
		s.mu.Unlock()
		s.poke(c.TenantID)
	})
	return tx.Put(bBudget, []byte(b.Subject), core.MustEncode(b))
}

// Budgets lists a tenant's budgets with what is used.
func (s *Swarm) Budgets(ctx context.Context, tenant string) ([]Budget, error) {
	var out []Budget
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		var bad error
		err := tx.Scan(bBudget, nil, nil, false, func(_, value []byte) bool {
			var b Budget
			if bad = core.DecodeStored(value, &b); bad != nil {
				return false
			}
			b.Used = usage(tx, b.Subject)
			out = append(out, b)
			return true
		})
		return errors.Join(err, bad)
	})
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	return out, nil
}

// Use adds to what a running task spent, and so to its agent's, session's and
// tenant's. Going past a limit freezes the subject and opens an approval.
func (s *Swarm) Use(ctx context.Context, by core.Caller, taskID string, tokens int64, costUSD float64) error {
	if tokens < 0 || costUSD < 0 || math.IsNaN(costUSD) || costUSD > 1e6 || tokens > 1e12 {
		return core.Errorf(core.InvalidInput, "usage: want 0 or more tokens and dollars").With("field", "usage")
	}
	t, err := s.header(ctx, by, taskID)
	if err != nil {
		return err
	}
	return s.ledger.Append(ctx, by, func(tx *audit.Tx) error {
		for _, subject := range append(lane{t.SessionID, t.Agent}.subjects(), "task:"+t.TaskID) {
			tx.Add(countUse("tokens", subject), tokens)
			tx.Add(countUse("cost", subject), int64(math.Round(costUSD*1e6)))
		}
		tx.Changed("usage", t.TaskID, nil)
		tx.OnCommit(s.ring)
		return nil
	})
}

// Usage is what a subject has spent: "tenant", "session:ID", "agent:NAME" or
// "task:ID".
func (s *Swarm) Usage(ctx context.Context, tenant, subject string) (u Usage, err error) {
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		u = usage(tx, subject)
		return nil
	})
	return u, err
}

// overTasks reports whether a budget on the number of tasks lets no further
// one of this lane start.
func (s *Swarm) overTasks(tx *audit.Tx, t *Task) (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	budgets := s.world(t.TenantID).budgets
	if len(budgets) == 0 {
		return false
	}
	for _, subject := range (lane{t.SessionID, t.Agent}).subjects() {
		if b := budgets[subject]; b != nil && b.Tasks > 0 && tx.Counter(countUse("tasks", subject)) >= b.Tasks*(b.Granted+1) {
			over = true
		}
	}
	return over
}

// spendWall counts the running time of an attempt that ends.
func (s *Swarm) spendWall(tx *audit.Tx, t *Task) {
	s.mu.Lock()
	var billed time.Duration
	if l := s.leases[t.TaskID]; l != nil {
		billed = l.billed
	}
	s.mu.Unlock()
	ms := max(0, tx.Now().Sub(t.StartedAt)-billed).Milliseconds()
	for _, subject := range (lane{t.SessionID, t.Agent}).subjects() {
		tx.Add(countUse("wall", subject), ms)
	}
}

// watchBudgets bills the wall time of running work, notices limits that were
// gone past and opens the approval for each.
func (s *Swarm) watchBudgets(ctx context.Context, tenant string) error {
	s.mu.Lock()
	w := s.world(tenant)
	subjects := make([]string, 0, len(w.budgets))
	for subject := range w.budgets {
		subjects = append(subjects, subject)
	}
	s.mu.Unlock()
	if len(subjects) == 0 {
		return nil
	}
	if err := s.billWall(ctx, tenant); err != nil {
		return err
	}
	for _, subject := range subjects {
		if err := s.watchBudget(ctx, tenant, subject); err != nil {
			return fmt.Errorf("watch budget of %s: %w", subject, err)
		}
	}
	return nil
}

// billWall adds the time since the last look to the counters, once a second.
func (s *Swarm) billWall(ctx context.Context, tenant string) error {
	type bill struct {
		l *lease
		d time.Duration
	}
	now := s.ledger.Clock().Now()
	var bills []bill
	s.mu.Lock()
	for _, l := range s.leases {
		if d := now.Sub(l.since) - l.billed; l.tenant == tenant && d >= time.Second {
			l.billed += d
			bills = append(bills, bill{l, d})
		}
	}
	s.mu.Unlock()
	if len(bills) == 0 {
		return nil
	}
	return s.ledger.Append(ctx, core.Self(tenant, "budgets"), func(tx *audit.Tx) error {
		for _, b := range bills {
			for _, subject := range (lane{b.l.session, b.l.agent}).subjects() {
				tx.Add(countUse("wall", subject), b.d.Milliseconds())
			}
		}
		return nil
	})
}

func (s *Swarm) watchBudget(ctx context.Context, tenant, subject string) error {
	var b Budget
	var limit string
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		if b, err = readBudget(tx, subject); err != nil {
			return err
		}
		u := usage(tx, subject)
		if limit = b.over(u); limit == "" && b.Tasks > 0 && u.Tasks >= b.Tasks*(b.Granted+1) && s.lanesWait(tenant, subject) {
			limit = "tasks" // the next one would go past it
		}
		b.Used = u
		return nil
	})
	if err != nil || limit == "" || b.Reached != "" && (b.ApprovalID != "" || b.Denied) {
		return err
	}
	return s.askBudget(ctx, b, limit)
}

// lanesWait reports whether a task waits that draws on the budget.
func (s *Swarm) lanesWait(tenant, subject string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.world(tenant).lanes {
		if contains(l.subjects(), subject) {
			return true
		}
	}
	return false
}

func (s *Swarm) askBudget(ctx context.Context, b Budget, limit string) error {
	by := core.Self(b.TenantID, "budgets")
	ask := judge.Ask{
		Gate: judge.GateBudget, TraceID: core.NewTrace(nil), Risk: judge.Medium, By: by, Attempt: int(b.Granted),
		Action: judge.Action{Kind: "budget", Args: core.MustEncode(map[string]any{
			"subject": b.Subject, "limit": limit, "granted": b.Granted, "tokens": b.Used.Tokens, "cost_usd": b.Used.CostUSD,
			"tasks": b.Used.Tasks, "wall_s": b.Used.WallMS / 1000,
		})},
		Intent: fmt.Sprintf("the %s budget of %s is used up: grant the same amount again?", limit, b.Subject),
	}
	if id, ok := strings.CutPrefix(b.Subject, "session:"); ok {
		ask.Session = id
	}
	if name, ok := strings.CutPrefix(b.Subject, "agent:"); ok {
		ask.Agent.Name = name
	}
	for {
		v := s.judge.Evaluate(ctx, b.TenantID, ask)
		err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			now, err := readBudget(tx, b.Subject)
			if err != nil || now.Granted != b.Granted || now.ApprovalID != "" {
				return err
			}
			dec, ap, err := s.judge.Commit(tx, ask, v)
			if err != nil {
				return err
			}
			now.Reached = limit
			switch {
			case ap != nil:
				now.ApprovalID = ap.ApprovalID
			case dec.Decision == judge.Approve:
				now.Granted, now.Reached = now.Granted+1, ""
			default:
				now.Denied = true
			}
			return s.putBudget(tx, &now, "budget.reached")
		})
		if !errors.Is(err, judge.ErrStale) {
			return err
		}
	}
}
