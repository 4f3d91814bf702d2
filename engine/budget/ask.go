package budget

import (
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

var _ judge.Settler = (*Budgets)(nil)

// Watch notices limits of a tenant that were gone past, and opens the approval
// for each.
func (s *Budgets) Watch(ctx context.Context, tenant string) error {
	for name := range s.held.Of(tenant) {
		err := s.watch(ctx, tenant, name)
		if len(core.DamagedIn(err)) > 0 {
			s.opt.Health.Report(tenant, component, "", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("watch budget of %s: %w", name, err)
		}
	}
	return nil
}

func (s *Budgets) watch(ctx context.Context, tenant, name string) error {
	var b *Budget
	var limit string
	err := s.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		if b, err = s.kind.Load(tx, name); err != nil || b == nil {
			return err
		}
		u := usage(tx, name)
		if limit = b.over(u); limit == "" && b.Tasks > 0 && u.Tasks >= b.Tasks*(b.Granted+1) && s.isShort(subject{tenant, name}) {
			limit = limitTasks // the next one would go past it
		}
		b.Used = u
		return nil
	})
	if err != nil || limit == "" || b.Reached != "" && (b.ApprovalID != "" || b.Denied) {
		return err
	}
	return s.ask(ctx, *b, limit)
}

func (s *Budgets) isShort(of subject) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.short[of]
}

func (s *Budgets) ask(ctx context.Context, b Budget, limit string) error {
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
		v := s.opt.Judge.Evaluate(ctx, b.TenantID, ask)
		return s.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
			old, err := s.kind.Load(tx, b.Subject)
			if err != nil || old == nil || old.Granted != b.Granted || old.ApprovalID != "" {
				return err
			}
			now := *old
			// Before the approval is seen: who looks for its cause finds it.
			tx.OnCommit(func() { s.follow(b.TenantID, b.Subject, &now) })
			dec, ap, err := s.opt.Judge.Commit(tx, ask, v)
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
			if err := s.put(tx, old, &now, "budget.reached"); err != nil || !now.Denied {
				return err
			}
			return s.stop(tx, &now)
		})
	})
}

// Settle implements judge.Settler: it grants the same amount again, or ends what
// runs on the budget.
func (s *Budgets) Settle(tx *audit.Tx, a judge.Approval, out judge.Outcome) error {
	var args struct {
		Subject string `json:"subject"`
	}
	if err := core.DecodeStored(a.Action.Args, &args); err != nil {
		return fmt.Errorf("budget approval %s: %w", a.ApprovalID, err)
	}
	old, err := s.kind.Load(tx, args.Subject)
	if err != nil {
		return err
	}
	if old == nil || old.ApprovalID != a.ApprovalID {
		return core.Errorf(core.Conflict, "the budget of %s does not wait for approval %s any more", args.Subject, a.ApprovalID)
	}
	b := *old
	b.ApprovalID = ""
	if out.Approved {
		b.Granted, b.Reached = b.Granted+1, ""
		return s.put(tx, old, &b, "budget.granted")
	}
	b.Denied = true
	if err := s.put(tx, old, &b, "budget.denied"); err != nil {
		return err
	}
	return s.stop(tx, &b)
}

// stop ends what runs on a budget of which more was denied; what is queued on
// it does not start any more.
func (s *Budgets) stop(tx *audit.Tx, b *Budget) error {
	if b.Reached == limitTasks {
		return nil // what runs was within it
	}
	return s.opt.Work.CancelSpenders(tx, b.Subject, "the budget of "+b.Subject+" is used up")
}
