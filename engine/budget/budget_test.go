package budget_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// rig is a world with budgets, and what draws on them.
type rig struct {
	*enginetest.World
	judge    *judge.Judge
	budgets  *budget.Budgets
	canceled []string
}

func newRig(t *testing.T) *rig {
	r := &rig{}
	r.World = enginetest.New(t, enginetest.Options{Build: func(w *enginetest.World) {
		r.judge = expect.Of(judge.New(judge.Options{Ledger: w.Ledger, Tenants: w.Store.Tenants}))(w.T)
		r.budgets = budget.New(budget.Options{Ledger: w.Ledger, Judge: r.judge, Health: health.New(health.Options{}), Sessions: r, Work: r})
		w.No(r.budgets.Read(t.Context(), enginetest.Acme))
	}})
	return r
}

// The rig implements budget.Sessions and budget.Work.

func (r *rig) ID(_ context.Context, _ core.Caller, id string) (string, error) { return id, nil }

func (r *rig) CancelSpenders(_ *audit.Tx, subject, _ string) error {
	r.canceled = append(r.canceled, subject)
	return nil
}

func (r *rig) BudgetChanged(string) {}
func (r *rig) BudgetUsed()          {}

func (r *rig) set(b budget.Budget) {
	r.T.Helper()
	expect.Of(r.budgets.Set(r.T.Context(), enginetest.Alice(), b))(r.T)
}

// use spends, and has the budgets notice it.
func (r *rig) use(who budget.Spender, tokens int64, cost float64) {
	r.T.Helper()
	r.No(r.budgets.Use(r.T.Context(), enginetest.Alice(), who, core.NewID(core.TaskPrefix, enginetest.Acme, 1), core.NewTrace(nil), tokens, cost))
	r.No(r.budgets.Watch(r.T.Context(), enginetest.Acme))
}

func (r *rig) one(subject string) budget.Budget {
	r.T.Helper()
	all := expect.Of(r.budgets.List(r.T.Context(), enginetest.Acme))(r.T)
	i := slices.IndexFunc(all, func(b budget.Budget) bool { return b.Subject == subject })
	expect.Must(r.T, i >= 0, "no budget of %s in %+v", subject, all)
	return all[i]
}

func (r *rig) answer(id string, ans judge.Answer) {
	r.T.Helper()
	expect.Of(r.judge.Answer(r.T.Context(), enginetest.Alice(), id, ans))(r.T)
}

var ada = budget.Spender{Session: "s_1", Agent: "ada"}

func TestWhatIsSpentCountsForEverySubjectItConcerns(t *testing.T) {
	r := newRig(t)
	r.use(ada, 100, 0.25)
	r.use(budget.Spender{Agent: "ada"}, 10, 0)
	for subject, want := range map[string]budget.Usage{
		"tenant": {Tokens: 110, CostUSD: 0.25}, "session:s_1": {Tokens: 100, CostUSD: 0.25}, "agent:ada": {Tokens: 110, CostUSD: 0.25}, "agent:bob": {},
	} {
		expect.Is(t, expect.Of(r.budgets.Usage(t.Context(), enginetest.Acme, subject))(t), want, subject)
	}
}

func TestAUsedUpBudgetAsksOnceAndAnApprovalGrantsTheSameAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits budget.Budget
		tokens int64
		cost   float64
	}{{"tokens", budget.Budget{Tokens: 100}, 100, 0}, {"cost", budget.Budget{CostUSD: 0.5}, 1, 0.5}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			c.limits.Subject = "agent:ada"
			r.set(c.limits)
			r.use(ada, c.tokens, c.cost)
			expect.True(t, r.budgets.Spent(enginetest.Acme, ada) && !r.budgets.Spent(enginetest.Acme, budget.Spender{Agent: "bob"}),
				"it does not hold its own spender alone")
			b := r.one("agent:ada")
			expect.Must(t, b.Reached == c.name && b.ApprovalID != "", "%+v, want %s reached and asked about", b, c.name)
			r.No(r.budgets.Watch(t.Context(), enginetest.Acme))
			again := r.one("agent:ada")
			expect.True(t, again.ApprovalID == b.ApprovalID, "it was asked about twice: %s and %s", b.ApprovalID, again.ApprovalID)
			r.answer(b.ApprovalID, judge.Answer{Approve: true, Reason: "go on"})
			b = r.one("agent:ada")
			expect.True(t, b.Granted == 1 && b.Reached == "" && !r.budgets.Spent(enginetest.Acme, ada), "after the grant: %+v", b)
			r.use(ada, c.tokens, c.cost)
			expect.True(t, r.budgets.Spent(enginetest.Acme, ada), "what was granted has no end")
			r.Proven(enginetest.Acme)
		})
	}
}

func TestADeniedBudgetEndsWhatRunsAndHoldsOverARestart(t *testing.T) {
	r := newRig(t)
	r.set(budget.Budget{Subject: "tenant", Tokens: 100})
	r.use(ada, 200, 0)
	r.answer(r.one("tenant").ApprovalID, judge.Answer{Reason: "enough"})
	expect.Same(t, r.canceled, []string{"tenant"}, "cancelled")
	r.Reopen()
	name, denied := r.budgets.Reached(enginetest.Acme, ada)
	expect.True(t, name == "tenant" && denied, "after a restart: %q reached, denied %v", name, denied)
	r.set(budget.Budget{Subject: "tenant", Tokens: 1000})
	expect.True(t, !r.budgets.Spent(enginetest.Acme, ada), "a raised limit still holds")
	b := r.one("tenant")
	expect.True(t, b.Used.Tokens == 200, "what was used is forgotten: %+v", b)
}

func TestANumberOfTasksHoldsTheNextOneNotWhatRuns(t *testing.T) {
	r := newRig(t)
	r.set(budget.Budget{Subject: "session:s_1", Tasks: 2})
	start := func() (full bool) {
		r.No(r.Ledger.Append(t.Context(), enginetest.Alice(), func(tx *audit.Tx) error {
			if full = r.budgets.Full(tx, ada); !full {
				r.budgets.Start(tx, ada)
			}
			return nil
		}))
		return full
	}
	expect.Same(t, []bool{start(), start(), start()}, []bool{false, false, true}, "held")
	r.No(r.budgets.Watch(t.Context(), enginetest.Acme))
	b := r.one("session:s_1")
	expect.True(t, b.Reached == "tasks" && b.ApprovalID != "" && !r.budgets.Spent(enginetest.Acme, ada), "%+v; what runs must go on", b)
	r.answer(b.ApprovalID, judge.Answer{Approve: true, Reason: "two more"})
	expect.True(t, !start(), "a task is held after the grant")
}

func TestRunningTimeCountsWhileItRunsAndOnce(t *testing.T) {
	r := newRig(t)
	r.set(budget.Budget{Subject: "agent:ada", WallS: 60})
	do := func(fn func(*audit.Tx) error) {
		r.T.Helper()
		r.No(r.Ledger.Append(t.Context(), enginetest.Alice(), fn))
	}
	do(func(tx *audit.Tx) error { return r.budgets.Note(tx, 1, ada, 20*time.Second) })
	expect.Is(t, r.one("agent:ada").Used.WallMS, 20_000, "noted")
	r.Reopen() // what was noted is all that is known of an attempt whose engine died
	do(func(tx *audit.Tx) error { return r.budgets.Bill(tx, 1, ada, -1) })
	do(func(tx *audit.Tx) error { return r.budgets.Bill(tx, 2, ada, 45*time.Second) })
	r.No(r.budgets.Watch(t.Context(), enginetest.Acme))
	b := r.one("agent:ada")
	expect.True(t, b.Used.WallMS == 65_000 && b.Reached == "wall", "%+v, want 65000 ms and the limit reached", b)
}

func TestBadLimitsAndUsesAreRefused(t *testing.T) {
	r := newRig(t)
	for _, b := range []budget.Budget{
		{Subject: "tenant", Tokens: -1},
		{Subject: "tenant", CostUSD: -0.1},
		{Subject: "tenant", Tasks: -1},
		{Subject: "tenant", WallS: -1},
		{Subject: "nobody", Tokens: 1},
		{Subject: "agent:", Tokens: 1},
		{Subject: "agent:\x1b[2J", Tokens: 1},
	} {
		expect.Is(t, core.AsError(expect.Fault(r.budgets.Set(t.Context(), enginetest.Alice(), b))).Code, core.InvalidInput, b)
	}
	task := core.NewID(core.TaskPrefix, enginetest.Acme, 1)
	for _, c := range []struct {
		tokens int64
		cost   float64
	}{{-1, 0}, {0, -1}, {1 << 60, 0}, {0, 1e9}} {
		expect.Is(t, core.AsError(r.budgets.Use(t.Context(), enginetest.Alice(), ada, task, core.NewTrace(nil), c.tokens, c.cost)).Code, core.InvalidInput, "use of", c)
	}
	expect.True(t, !r.budgets.Any(enginetest.Acme), "a refused budget is there")
}
