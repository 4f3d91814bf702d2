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
		return limitTasks
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

// spent reports whether a used-up budget closes a lane and stops its running
// work. One on the number of tasks does neither: it holds new ones one by one.
func (w *world) spent(l lane) bool {
	if len(w.budgets) == 0 {
		return false
	}
	for _, subject := range l.subjects() {
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
	for _, subject := range l.subjects() {
		if b := w.budgets[subject]; b != nil && b.Reached != "" {
			return subject
		}
	}
	return ""
}

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

func (b *Budget) check() error {
	for _, f := range []struct {
		field string
		v     float64
		most  float64
	}{
		{"tokens", float64(b.Tokens), maxTokens}, {"cost_usd", b.CostUSD, maxCost},
		{"tasks", float64(b.Tasks), maxTasks}, {"wall_s", float64(b.WallS), maxWallS},
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
	if err := b.check(); err != nil {
		return b, err
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
		if b.Tokens == 0 && b.CostUSD == 0 && b.Tasks == 0 && b.WallS == 0 {
			return s.removeBudget(tx, &b)
		}
		b.Reached = b.over(usage(tx, b.Subject))
		return s.putBudget(tx, &b, "budget.set")
	})
	if err != nil {
		return b, fmt.Errorf("set budget of %s: %w", b.Subject, err)
	}
	return b, nil
}

func (s *Swarm) removeBudget(tx *audit.Tx, b *Budget) error {
	b.UpdatedAt, b.Used = tx.Now(), usage(tx, b.Subject)
	if _, err := tx.Record(audit.Entry{
		Type: "budget.removed", Subject: "budget", ID: b.Subject, State: audit.Gone, Prev: b.AuditSeq,
	}); err != nil {
		return err
	}
	tenant, subject := tx.Tenant(), b.Subject
	tx.Changed("budget", subject, nil)
	tx.OnCommit(func() {
		s.mu.Lock()
		w := s.keep(tenant)
		delete(w.budgets, subject)
		delete(w.short, subject)
		s.mu.Unlock()
		s.poke(tenant)
	})
	return tx.Delete(bBudget, []byte(subject))
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
		w := s.keep(c.TenantID)
		w.budgets[c.Subject] = &c
		delete(w.short, c.Subject)
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
	if tokens < 0 || tokens > maxTokens {
		return core.Invalid("tokens", tokens, fmt.Sprint("0-", maxTokens))
	}
	if !(costUSD >= 0 && costUSD <= 1e6) {
		return core.Invalid("cost_usd", costUSD, "0-1000000")
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

// overTasks reports whether a budget on the number of tasks lets this one not
// start; the budget is asked about then. A task that started before was counted
// then.
func (s *Swarm) overTasks(tx *audit.Tx, t *Task) (over bool) {
	if !t.StartedAt.IsZero() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	budgets := s.world(t.TenantID).budgets
	if len(budgets) == 0 {
		return false
	}
	for _, subject := range (lane{t.SessionID, t.Agent}).subjects() {
		if b := budgets[subject]; b != nil && b.Tasks > 0 && tx.Counter(countUse("tasks", subject)) >= b.Tasks*(b.Granted+1) {
			over = true
			tx.OnCommit(func() { s.tooFew(t.TenantID, subject) })
		}
	}
	return over
}

// tooFew notes that a task waits which a budget has no room for.
func (s *Swarm) tooFew(tenant, subject string) {
	s.mu.Lock()
	w := s.keep(tenant)
	news := !w.short[subject]
	w.short[subject] = true
	s.mu.Unlock()
	if news {
		s.ring()
	}
}

// spendWall bills the running time of an attempt that ends and was not billed
// yet. An attempt of an engine that died has no lease, and nobody knows how
// long it ran: what was billed while it did is all.
func (s *Swarm) spendWall(tx *audit.Tx, t *Task) {
	var d time.Duration
	s.mu.Lock()
	if l := s.leases[t.ref()]; l != nil && l.id == t.Lease {
		d = l.bill(s.uptime())
	}
	s.mu.Unlock()
	addWall(tx, lane{t.SessionID, t.Agent}, d)
}

// bill takes the running time that is not billed yet, in whole milliseconds.
// It is called on the store's writer only, so that no time is billed twice.
func (l *lease) bill(now time.Duration) time.Duration {
	d := max(0, l.ran(now)-l.billed).Truncate(time.Millisecond)
	l.billed += d
	return d
}

func addWall(tx *audit.Tx, l lane, d time.Duration) {
	for _, subject := range l.subjects() {
		tx.Add(countUse("wall", subject), d.Milliseconds())
	}
}

// watchBudgets bills the wall time of running work, notices limits that were
// gone past and opens the approval for each. It reports whether there is a
// budget that running work draws on, so that it must look again soon.
func (s *Swarm) watchBudgets(ctx context.Context, tenant string) (soon bool, err error) {
	s.mu.Lock()
	w := s.world(tenant)
	subjects := make([]string, 0, len(w.budgets))
	for subject := range w.budgets {
		subjects = append(subjects, subject)
	}
	s.mu.Unlock()
	if len(subjects) == 0 {
		return false, nil
	}
	if soon, err = s.billWall(ctx, tenant); err != nil {
		return soon, fmt.Errorf("bill the running time: %w", err)
	}
	for _, subject := range subjects {
		if err := s.watchBudget(ctx, tenant, subject); err != nil {
			return soon, fmt.Errorf("watch budget of %s: %w", subject, err)
		}
	}
	return soon, nil
}

// billWall adds the running time since the last look to the counters, once a
// second, and reports whether anything runs.
func (s *Swarm) billWall(ctx context.Context, tenant string) (runs bool, err error) {
	due := func(now time.Duration) (out []*lease) {
		for _, l := range s.leases {
			if l.tenant == tenant {
				runs = true
				if l.ran(now)-l.billed >= time.Second {
					out = append(out, l)
				}
			}
		}
		return out
	}
	s.mu.Lock()
	now := due(s.uptime())
	s.mu.Unlock()
	if len(now) == 0 {
		return runs, nil
	}
	return runs, s.ledger.Append(ctx, core.Self(tenant, "budgets"), func(tx *audit.Tx) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range due(s.uptime()) {
			addWall(tx, lane{l.session, l.agent}, l.bill(s.uptime()))
		}
		tx.Changed("usage", tenant, nil)
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
		if limit = b.over(u); limit == "" && b.Tasks > 0 && u.Tasks >= b.Tasks*(b.Granted+1) && s.isShort(tenant, subject) {
			limit = limitTasks // the next one would go past it
		}
		b.Used = u
		return nil
	})
	if err != nil || limit == "" || b.Reached != "" && (b.ApprovalID != "" || b.Denied) {
		return err
	}
	return s.askBudget(ctx, b, limit)
}

func (s *Swarm) isShort(tenant, subject string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world(tenant).short[subject]
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
