package fleet

import (
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// Validate implements judge.Settler: edited arguments must be a JSON object.
func (f *Fleet) Validate(_ judge.Approval, args core.Raw) (core.Raw, error) {
	return args, core.CheckObject("args", args, core.MaxInput)
}

// Settle implements judge.Settler: the agent no longer waits, and its run is
// woken after the commit. An approval whose run is gone can't be approved.
func (f *Fleet) Settle(tx *audit.Tx, ap judge.Approval, out judge.Outcome) error {
	tenant := tx.Tenant()
	if out.Approved && !f.asked.has(tenant, ap.ApprovalID) {
		return core.Errorf(core.Conflict, "approval %s: the run that asked has ended, nobody would act on it", ap.ApprovalID).With("field", "approval")
	}
	tx.OnCommit(func() { f.asked.tell(tenant, ap.ApprovalID, out) })
	m := f.member(tenant, ap.Agent.Name)
	if m == nil {
		return nil
	}
	n := note{event: "agent.answered", trace: ap.TraceID, detail: map[string]any{
		"approval_id": ap.ApprovalID, "approved": out.Approved, "abort": out.Abort,
	}}
	_, err := f.changeIn(tx, m, n, func(_ *audit.Tx, a *Agent) error {
		if a.Waiting != ap.ApprovalID {
			return errSame
		}
		a.Waiting = ""
		return f.opt.Swarm.Gate(tx, ap.TaskID, "")
	})
	return err
}

// waiters are the tool calls that wait for a person, by tenant and approval.
type waiters struct {
	mu   sync.Mutex
	open map[string]chan judge.Outcome
}

type waiter struct {
	all      *waiters
	key      string
	approval string
	ch       chan judge.Outcome // one slot, told at most once
}

func (w *waiters) prepare(tenant, approval string) *waiter {
	return &waiter{all: w, key: tenant + "/" + approval, approval: approval, ch: make(chan judge.Outcome, 1)}
}

func (w *waiter) register() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.all.open[w.key] = w.ch
}

func (w *waiters) drop(x *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, x.key)
}

func (w *waiters) has(tenant, approval string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[tenant+"/"+approval] != nil
}

func (w *waiters) tell(tenant, approval string, out judge.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := tenant + "/" + approval
	if ch := w.open[key]; ch != nil {
		ch <- out
		delete(w.open, key)
	}
}
