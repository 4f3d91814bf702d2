package swarm

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// Usage is what something spent.
type Usage struct {
	Tokens  int64   `json:"tokens"`
	CostUSD float64 `json:"cost_usd"`
	Tasks   int64   `json:"tasks"`
	WallMS  int64   `json:"wall_ms"`
}

// Usage counters: cost is kept in millionths of a dollar.
func countUse(what, subject string) string {
	if subject == "tenant" { // constants: each task asks for them
		switch what {
		case "tasks":
			return "use.tasks.tenant"
		case "wall":
			return "use.wall.tenant"
		}
	}
	return "use." + what + "." + subject
}

func usage(tx *audit.Tx, subject string) Usage {
	return Usage{
		Tokens:  tx.Counter(countUse("tokens", subject)),
		CostUSD: float64(tx.Counter(countUse("cost", subject))) / 1e6,
		Tasks:   tx.Counter(countUse("tasks", subject)),
		WallMS:  tx.Counter(countUse("wall", subject)) + standing(tx, subject),
	}
}

// ranFor is how long work that still runs was seen to run. It is written once
// a second, and so proven no sooner than it is billed, when the work ends.
type ranFor struct {
	Session string `json:"session,omitempty"`
	Agent   string `json:"agent,omitempty"`
	MS      int64  `json:"ms"`
}

// standing is the running time of a subject's work that is not billed yet. What
// can't be read counts as none: it is less than what an attempt takes.
func standing(tx *audit.Tx, subject string) (ms int64) {
	_ = tx.Scan(bRunning, nil, nil, false, func(_, value []byte) bool {
		var r ranFor
		if core.DecodeStored(value, &r) == nil {
			for s := range (lane{r.Session, r.Agent}).subjects() {
				if s == subject {
					ms += r.MS
				}
			}
		}
		return true
	})
	return ms
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
	t, err := s.tasks.Header(ctx, by, taskID)
	if err != nil {
		return err
	}
	return s.ledger.Append(ctx, by, func(tx *audit.Tx) error {
		tx.Trace = t.TraceID
		add := func(subject string) bool {
			tx.Add(countUse("tokens", subject), tokens)
			tx.Add(countUse("cost", subject), int64(math.Round(costUSD*1e6)))
			return true
		}
		lane{t.SessionID, t.Agent}.subjects()(add)
		add("task:" + t.TaskID)
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
func (s *Swarm) overTasks(tx *audit.Tx, t *task.Task) (over bool) {
	if !t.StartedAt.IsZero() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	budgets := s.world(t.TenantID).budgets
	if len(budgets) == 0 {
		return false
	}
	for subject := range (lane{t.SessionID, t.Agent}).subjects() {
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

// spendWall bills the running time of an attempt that ends. An attempt of an
// engine that died has no lease, and nobody knows how long it ran: what was seen
// while it did is all.
func (s *Swarm) spendWall(tx *audit.Tx, t *task.Task) error {
	key := record.Key(tx.Alloc(8)).Seq(t.Seq())
	seen, err := tx.Get(bRunning, key)
	if err != nil {
		return fmt.Errorf("read how long task %s ran: %w", t.TaskID, err)
	}
	var r ranFor
	if seen != nil {
		if err := core.DecodeStored(seen, &r); err != nil {
			r.MS = 0
		}
		if err := tx.Delete(bRunning, key); err != nil {
			return err
		}
	}
	s.mu.Lock()
	if l := s.leases[refOf(t)]; l != nil && l.id == t.Lease {
		r.MS = l.ran(s.uptime()).Milliseconds()
	}
	s.mu.Unlock()
	for subject := range (lane{t.SessionID, t.Agent}).subjects() {
		tx.Add(countUse("wall", subject), r.MS)
	}
	return nil
}

// watchBudgets notes the wall time of running work, notices limits that were
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
	if soon, err = s.noteWall(ctx, tenant); err != nil {
		return soon, fmt.Errorf("note the running time: %w", err)
	}
	for _, subject := range subjects {
		err := s.watchBudget(ctx, tenant, subject)
		if len(core.DamagedIn(err)) > 0 {
			s.opt.Health.Report(tenant, component, "", err)
			continue
		}
		if err != nil {
			return soon, fmt.Errorf("watch budget of %s: %w", subject, err)
		}
	}
	return soon, nil
}

// noteWall writes down how long work has run, once a second, and reports whether
// anything runs.
func (s *Swarm) noteWall(ctx context.Context, tenant string) (runs bool, err error) {
	due := func(now time.Duration) (out []*lease) {
		for _, l := range s.leases {
			if l.tenant == tenant {
				runs = true
				if l.ran(now)-l.noted >= time.Second {
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
		now := s.uptime()
		for _, l := range due(now) {
			l.noted = l.ran(now)
			r := ranFor{l.session, l.agent, l.noted.Milliseconds()}
			if err := tx.Put(bRunning, record.Seq(task.Seq(l.ref.task)), core.MustEncode(r)); err != nil {
				return err
			}
		}
		tx.Changed("usage", tenant, nil)
		return nil
	})
}

func (s *Swarm) watchBudget(ctx context.Context, tenant, subject string) error {
	var b *Budget
	var limit string
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		if b, err = s.budgets.Load(tx, subject); err != nil || b == nil {
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
	return s.askBudget(ctx, *b, limit)
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
	return judge.Decide(func() error {
		v := s.judge.Evaluate(ctx, b.TenantID, ask)
		return s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			old, err := s.budgets.Load(tx, b.Subject)
			if err != nil || old == nil || old.Granted != b.Granted || old.ApprovalID != "" {
				return err
			}
			now := *old
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
			return s.putBudget(tx, old, &now, "budget.reached")
		})
	})
}
