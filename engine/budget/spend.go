package budget

import (
	"context"
	"fmt"
	"math"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

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

// countsOf are all of a subject.
func countsOf(subject string) []string {
	return []string{countUse("tokens", subject), countUse("cost", subject), countUse("tasks", subject), countUse("wall", subject)}
}

// usage is what a subject has spent within a transaction.
func usage(tx *audit.Tx, subject string) Usage { return billed(tx, subject, standing(tx, subject)) }

// billed is what was billed, and standing not yet.
func billed(c record.Counters, subject string, standing int64) Usage {
	return Usage{
		Tokens:  c.Counter(countUse("tokens", subject)),
		CostUSD: float64(c.Counter(countUse("cost", subject))) / 1e6,
		Tasks:   c.Counter(countUse("tasks", subject)),
		WallMS:  c.Counter(countUse("wall", subject)) + standing,
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
	_ = running.Within(tx, nil, nil, nil, false, func(_ record.Parts, f record.Found[ranFor]) (bool, error) {
		if r, err := f.Value(); err == nil {
			ms += r.drawn(subject)
		}
		return true, nil
	})
	return ms
}

// drawn is what a subject's budget has of it.
func (r ranFor) drawn(subject string) int64 {
	if (Spender{r.Session, r.Agent}).Draws(subject) {
		return r.MS
	}
	return 0
}

// shown is what a subject with a budget has spent, from memory.
func (s *Budgets) shown(c record.Counters, tenant, subject string) Usage {
	var ms int64
	s.mu.Lock()
	for of, r := range s.running {
		if of.tenant == tenant {
			ms += r.drawn(subject)
		}
	}
	s.mu.Unlock()
	return billed(c, subject, ms)
}

// Use adds to what a running task spent, and so to its agent's, session's and
// tenant's.
func (s *Budgets) Use(ctx context.Context, by core.Caller, who Spender, taskID, trace string, tokens int64, costUSD float64) error {
	if err := bound.Check(&Usage{Tokens: tokens, CostUSD: costUSD}); err != nil {
		return err
	}
	if _, err := s.opt.Ledger.LocalSeq(ctx, by, core.TaskPrefix, taskID); err != nil {
		return err
	}
	return s.opt.Ledger.Append(ctx, by, func(tx *audit.Tx) error {
		tx.Trace = trace
		s.UseIn(tx, who, taskID, tokens, costUSD)
		return nil
	})
}

// UseIn is Use within a transaction, of what was checked.
func (s *Budgets) UseIn(tx *audit.Tx, who Spender, taskID string, tokens int64, costUSD float64) {
	add := func(subject string) bool {
		tx.Add(countUse("tokens", subject), tokens)
		tx.Add(countUse("cost", subject), int64(math.Round(costUSD*1e6)))
		return true
	}
	who.subjects()(add)
	add("task:" + taskID)
	tx.Changed("usage", taskID)
	tx.OnCommit(s.opt.Work.BudgetUsed)
}

// Usage is what a subject has spent: "tenant", "session:ID", "agent:NAME" or
// "task:ID".
func (s *Budgets) Usage(ctx context.Context, tenant, subject string) (u Usage, err error) {
	err = s.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		u = usage(tx, subject)
		return nil
	})
	return u, err
}

// UsageIn is Usage within a transaction.
func (s *Budgets) UsageIn(tx *audit.Tx, subject string) Usage { return usage(tx, subject) }

// Full reports whether a budget on the number of tasks lets no further task of
// a spender start; the budget is asked about then.
func (s *Budgets) Full(tx *audit.Tx, who Spender) (full bool) {
	tenant := tx.Tenant()
	for name, of := range s.of(tenant, who) {
		if of.Tasks > 0 && tx.Counter(countUse("tasks", name)) >= of.Tasks*(of.Granted+1) {
			full = true
			tx.OnCommit(func() { s.noteExhausted(subject{tenant, name}) })
		}
	}
	return full
}

// noteExhausted notes that a task waits which a budget has no room for.
func (s *Budgets) noteExhausted(of subject) {
	s.mu.Lock()
	news := !s.short[of]
	s.short[of] = true
	s.mu.Unlock()
	if news {
		s.opt.Work.BudgetUsed()
	}
}

// Start counts a task that starts.
func (s *Budgets) Start(tx *audit.Tx, who Spender) {
	for subject := range who.subjects() {
		tx.Add(countUse("tasks", subject), 1)
	}
}

// Note writes down how long an attempt that goes on has run up to now.
func (s *Budgets) Note(tx *audit.Tx, seq uint64, who Spender, ran time.Duration) error {
	r := ranFor{who.Session, who.Agent, ran.Milliseconds()}
	tenant := tx.Tenant()
	tx.OnCommit(func() { s.ran(attempt{tenant, seq}, &r) })
	return running.Put(tx, record.Seq(seq), r)
}

// Bill adds the running time of an attempt that ends. Of one whose engine died
// nobody knows how long it ran: ran is negative then, and what was noted while
// it did is all.
func (s *Budgets) Bill(tx *audit.Tx, seq uint64, who Spender, ran time.Duration) error {
	key := record.Key(tx.Alloc(8)).Seq(seq)
	r, noted, err := running.Get(tx, key)
	if noted = noted || len(core.DamagedIn(err)) > 0; !noted && err != nil {
		return fmt.Errorf("read how long task number %d ran: %w", seq, err)
	}
	if noted {
		tenant := tx.Tenant()
		tx.OnCommit(func() { s.ran(attempt{tenant, seq}, nil) })
		if err := running.Delete(tx, key); err != nil {
			return err
		}
	}
	if ran >= 0 {
		r.MS = ran.Milliseconds()
	}
	for subject := range who.subjects() {
		tx.Add(countUse("wall", subject), r.MS)
	}
	return nil
}
