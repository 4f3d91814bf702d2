// Package budget keeps what a tenant, a session or an agent may spend and what
// it has spent: tokens, cost, tasks and running time.
//
// A budget that is used up opens an approval, and says by Spent and Full that
// nothing more may start; it knows no task. Who runs tasks asks before it claims,
// freezes what is Spent, and tells what was used.
//
// Lock order: nothing is called with a lock of Budgets held, so Spent and
// Reached may be asked under any lock.
package budget

import (
	"context"
	"errors"
	"iter"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
)

// Options of New.
type Options struct {
	Ledger   *audit.Ledger
	Judge    *judge.Judge
	Health   *health.Troubles
	Sessions Sessions
	Agents   Agents // nil knows every name
	Work     Work
}

// Agents know who may have a budget.
type Agents interface {
	// Known reports whether a tenant has an agent, Elsewhere whether only another
	// tenant does.
	Known(tenant, name string) bool
	Elsewhere(tenant, name string) bool
}

// Sessions resolve a session's id or name.
type Sessions interface {
	ID(ctx context.Context, by core.Caller, id string) (string, error)
}

// Work is what draws on budgets.
type Work interface {
	// CancelSpenders ends, with the transaction, what runs and draws on a subject.
	CancelSpenders(tx *audit.Tx, subject, why string) error
	// BudgetChanged is told of every change after its commit.
	BudgetChanged(tenant string)
	// BudgetUsed asks for a Watch.
	BudgetUsed()
}

// Budgets are the budgets of all tenants.
type Budgets struct {
	opt  Options
	kind record.Table[Budget]
	held record.Mirror[Budget]

	mu      sync.Mutex
	short   map[subject]bool   // those that have no room for a waiting task
	running map[attempt]ranFor // as it is on disk
}

// attempt is a running one, by its task's number.
type attempt struct {
	tenant string
	seq    uint64
}

// subject is one of a tenant.
type subject struct{ tenant, name string }

// Spender is for whom work is done: its session and agent, "" for none.
type Spender struct{ Session, Agent string }

// subjects are the budgets that a spender draws on.
func (s Spender) subjects() iter.Seq[string] {
	return func(yield func(string) bool) {
		_ = yield("tenant") && (s.Session == "" || yield("session:"+s.Session)) && (s.Agent == "" || yield("agent:"+s.Agent))
	}
}

// Draws reports whether a spender draws on a subject's budget.
func (s Spender) Draws(subject string) bool {
	for name := range s.subjects() {
		if name == subject {
			return true
		}
	}
	return false
}

// running is how long tasks that run have run so far, by their number.
const running record.Rows[ranFor] = "running"

// New makes them; Read brings in what a tenant's records say. They settle the
// approvals that they open.
func New(opt Options) *Budgets {
	s := &Budgets{opt: opt, short: map[subject]bool{}, running: map[attempt]ranFor{}}
	s.kind = &record.Kind[*Budget]{
		Noun: "budget", Bucket: "budget", Ledger: opt.Ledger, Follow: s.follow,
		Unread: func(tenant, name string) {
			s.follow(tenant, name, &Budget{TenantID: tenant, Subject: name, Reached: unreadable})
		},
		ID:   func(b *Budget) string { return b.Subject },
		Says: "reached granted",
	}
	opt.Ledger.Register(s.kind.Auditable())
	opt.Ledger.Declare(audit.Volatile, string(running))
	opt.Judge.Own(judge.GateBudget, s)
	return s
}

// Read takes over what is on disk of a tenant. A budget that can't be read
// counts as used up.
func (s *Budgets) Read(ctx context.Context, tenant string) error {
	err := s.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return running.Within(tx, nil, nil, nil, false, func(k record.Parts, f record.Found[ranFor]) (bool, error) {
			if r, err := f.Value(); err == nil { // else it counts as none
				s.ran(attempt{tenant, k.Seq()}, &r)
			}
			return true, nil
		})
	})
	return errors.Join(err, s.kind.Read(ctx, tenant))
}

// ran takes over how long a task ran; nil when it does not run any more.
func (s *Budgets) ran(of attempt, r *ranFor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == nil {
		delete(s.running, of)
	} else {
		s.running[of] = *r
	}
}

// follow takes a budget over, as it is on disk; nil was removed.
func (s *Budgets) follow(tenant, name string, now *Budget) {
	if now != nil { // before List can find it
		s.opt.Ledger.Hold(tenant, countsOf(name)...)
	}
	s.held.Follow(tenant, name, now)
	if now == nil {
		s.opt.Ledger.Release(tenant, countsOf(name)...)
	}
	s.mu.Lock()
	delete(s.short, subject{tenant, name})
	s.mu.Unlock()
	s.opt.Work.BudgetChanged(tenant)
}

// Any reports whether a tenant has budgets.
func (s *Budgets) Any(tenant string) bool { return len(s.held.Of(tenant)) > 0 }

// Spent reports whether a used-up budget keeps a spender from starting more and
// stops its running work. One on the number of tasks does neither: it holds new
// ones one by one, by Full.
func (s *Budgets) Spent(tenant string, who Spender) bool {
	for _, b := range s.of(tenant, who) {
		if b.Reached != "" && b.Reached != limitTasks {
			return true
		}
	}
	return false
}

// of are the budgets that a spender draws on, by their subjects.
func (s *Budgets) of(tenant string, who Spender) iter.Seq2[string, *Budget] {
	return func(yield func(string, *Budget) bool) {
		all := s.held.Of(tenant)
		if len(all) == 0 {
			return
		}
		for name := range who.subjects() {
			if b := all[name]; b != nil && !yield(name, b) {
				return
			}
		}
	}
}

// Limited reports whether a spender has a budget: what it uses is to be known at once.
func (s *Budgets) Limited(tenant string, who Spender) bool {
	for range s.of(tenant, who) {
		return true
	}
	return false
}

// Denied names a used-up budget that holds a spender and of which more was
// denied; "" is none. For a task that has not started, one on the number of tasks
// counts too.
func (s *Budgets) Denied(tenant string, who Spender, started bool) string {
	for name, b := range s.of(tenant, who) {
		if b.Denied && b.Reached != "" && !(started && b.Reached == limitTasks) {
			return name
		}
	}
	return ""
}

// Reached names the first used-up budget of a spender, "" for none, and tells
// whether more was denied.
func (s *Budgets) Reached(tenant string, who Spender) (name string, denied bool) {
	for name, b := range s.of(tenant, who) {
		if b.Reached != "" {
			return name, b.Denied
		}
	}
	return "", false
}
