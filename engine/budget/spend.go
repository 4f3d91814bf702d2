package budget

import (
	"context"
	"fmt"
	"math"
	"time"

	"swarmdeck/engine/audit"
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
			if (Spender{r.Session, r.Agent}).Draws(subject) {
				ms += r.MS
			}
		}
		return true
	})
	return ms
}

// Use adds to what a running task spent, and so to its agent's, session's and
// tenant's.
func (s *Budgets) Use(ctx context.Context, by core.Caller, who Spender, taskID, trace string, tokens int64, costUSD float64) error {
	if tokens < 0 || tokens > maxTokens {
		return core.Invalid("tokens", tokens, fmt.Sprint("0-", maxTokens))
	}
	if !(costUSD >= 0 && costUSD <= 1e6) {
		return core.Invalid("cost_usd", costUSD, "0-1000000")
	}
	if _, err := s.opt.Ledger.LocalSeq(ctx, by, core.TaskPrefix, taskID); err != nil {
		return err
	}
	return s.opt.Ledger.Append(ctx, by, func(tx *audit.Tx) error {
		tx.Trace = trace
		add := func(subject string) bool {
			tx.Add(countUse("tokens", subject), tokens)
			tx.Add(countUse("cost", subject), int64(math.Round(costUSD*1e6)))
			return true
		}
		who.subjects()(add)
		add("task:" + taskID)
		tx.Changed("usage", taskID, nil)
		tx.OnCommit(s.opt.Work.BudgetUsed)
		return nil
	})
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

// Full reports whether a budget on the number of tasks lets no further task of
// a spender start; the budget is asked about then.
func (s *Budgets) Full(tx *audit.Tx, who Spender) (full bool) {
	tenant := tx.Tenant()
	all := s.held.Of(tenant)
	if len(all) == 0 {
		return false
	}
	for name := range who.subjects() {
		if of := all[name]; of != nil && of.Tasks > 0 && tx.Counter(countUse("tasks", name)) >= of.Tasks*(of.Granted+1) {
			full = true
			tx.OnCommit(func() { s.tooFew(subject{tenant, name}) })
		}
	}
	return full
}

// tooFew notes that a task waits which a budget has no room for.
func (s *Budgets) tooFew(of subject) {
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
	return tx.Put(bRunning, record.Seq(seq), core.MustEncode(ranFor{who.Session, who.Agent, ran.Milliseconds()}))
}

// Bill adds the running time of an attempt that ends. Of one whose engine died
// nobody knows how long it ran: ran is negative then, and what was noted while
// it did is all.
func (s *Budgets) Bill(tx *audit.Tx, seq uint64, who Spender, ran time.Duration) error {
	key := record.Key(tx.Alloc(8)).Seq(seq)
	noted, err := tx.Get(bRunning, key)
	if err != nil {
		return fmt.Errorf("read how long task number %d ran: %w", seq, err)
	}
	var r ranFor
	if noted != nil {
		if err := core.DecodeStored(noted, &r); err != nil {
			r.MS = 0
		}
		if err := tx.Delete(bRunning, key); err != nil {
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
