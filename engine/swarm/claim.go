package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/queue"
	"swarmdeck/engine/session"
	"swarmdeck/engine/task"
)

// localWorker is the name under which this engine holds its leases.
const localWorker = "engine"

// Claim gives worker up to n claimable tasks, the highest priority and the
// oldest first, each under a lease that Beat keeps. Tasks of sessions that do
// not run and everything during an emergency stop stay where they are, and so
// do tasks for agents: this engine's own runner takes them to their agent.
func (s *Swarm) Claim(ctx context.Context, by core.Caller, worker string, n int) ([]task.Task, error) {
	if err := checkClaim(worker, n); err != nil {
		return nil, err
	}
	return s.claim(ctx, by, worker, n, s.generalLanes(by.Tenant))
}

func checkClaim(worker string, n int) error {
	if n < 1 || n > 1000 {
		return core.Invalid("n", n, "1-1000")
	}
	if worker == "" || len(worker) > 128 || worker == localWorker || !utf8.ValidString(worker) {
		return core.Invalid("worker", worker, "1-128 bytes of UTF-8, but not "+localWorker+", which is this engine")
	}
	return nil
}

// generalLanes are the lanes for no agent that a claim may take from now.
func (s *leasing) generalLanes(tenant string) []queue.Lane {
	return s.queue.Lanes(tenant, func(l queue.Lane) bool { return l.Agent == "" && s.open(tenant, l) })
}

// agentLanes are the lanes for agents that are free. Only the scheduler takes
// from them, so that no agent gets two tasks at once.
func (s *leasing) agentLanes(tenant string) []queue.Lane {
	s.mu.Lock()
	at := map[string]bool{} // agents at work
	for _, l := range s.leases {
		if l.tenant == tenant && l.agent != "" {
			at[l.agent] = true
		}
	}
	var keepers []Runner // of agents: each knows its own
	for _, r := range s.runners {
		if _, ok := r.(targeter); ok {
			keepers = append(keepers, r)
		}
	}
	s.mu.Unlock()
	out := s.queue.Lanes(tenant, func(l queue.Lane) bool { return l.Agent != "" && !at[l.Agent] && s.open(tenant, l) })
	// Slot is the keepers': it may take their locks, so ask without ours.
	return slices.DeleteFunc(out, func(l queue.Lane) bool {
		return !slices.ContainsFunc(keepers, func(r Runner) bool {
			free, _ := r.Slot(tenant, l.Agent)
			return free
		})
	})
}

// open reports whether tasks of a lane may start now.
func (s *shared) open(tenant string, l queue.Lane) bool {
	return !s.rests(tenant) && !s.EStops.On(tenant) && (l.Session == "" || s.Sessions.State(tenant, l.Session) == session.Running) &&
		!s.Budgets.Spent(tenant, budget.Spender(l))
}

func (s *Swarm) claim(ctx context.Context, by core.Caller, worker string, n int, lanes []queue.Lane) (out []task.Task, err error) {
	if len(lanes) == 0 || n == 0 {
		return nil, nil
	}
	for {
		err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			out, err = s.claimIn(tx, worker, n, lanes)
			return err
		})
		if err == nil {
			return out, nil
		}
		if !errors.Is(err, errQuarantined) {
			return nil, fmt.Errorf("claim: %w", err)
		}
	}
}

// claimIn takes up to n tasks from the lanes.
func (s *Swarm) claimIn(tx *audit.Tx, worker string, n int, lanes []queue.Lane) (out []task.Task, err error) {
	if s.EStops.OnIn(tx) {
		return nil, nil
	}
	fronts, err := s.fronts(tx, lanes)
	if err != nil {
		return nil, err
	}
	for turned := 0; len(out) < n && len(fronts) > 0; {
		if turned == changeBatch { // others must not wait long behind it
			tx.OnCommit(s.ring)
			break
		}
		best := queue.First(fronts)
		l, seq := fronts[best].Lane, fronts[best].Seq()
		out = append(out, task.Task{})
		last := len(out) - 1
		took, err := s.take(tx, worker, fronts[best], &out[last])
		if err != nil {
			return nil, s.unless(tx.Tenant(), seq, err)
		}
		if took != taken {
			out = out[:last]
			turned++
		}
		switch {
		case len(out) == n: // look no further
		case took == taken && l.Agent != "": // one task at a time
			fronts = slices.DeleteFunc(fronts, func(f queue.Front) bool { return f.Lane.Agent == l.Agent })
		case took == overBudget:
			fronts = slices.Delete(fronts, best, best+1)
		default:
			next, ok, err := s.front(tx, l)
			if err != nil {
				return nil, err
			}
			if fronts[best] = next; !ok {
				fronts = slices.Delete(fronts, best, best+1)
			}
		}
	}
	return out, nil
}

// fronts are the first tasks of the lanes that hold any and whose session still
// runs: it may have been paused in this very commit.
func (s *Swarm) fronts(tx *audit.Tx, lanes []queue.Lane) ([]queue.Front, error) {
	out := make([]queue.Front, 0, len(lanes))
	for _, l := range lanes {
		f, ok, err := s.front(tx, l)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if l.Session != "" {
			ses, err := s.Sessions.In(tx, l.Session)
			if len(core.DamagedIn(err)) > 0 {
				s.opt.Health.Report(tx.Tenant(), component, "", err)
				continue
			}
			if err != nil {
				return nil, err
			}
			if ses.State != session.Running {
				continue
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// front is the first task of a lane that can be acted on.
func (s *damage) front(tx *audit.Tx, l queue.Lane) (queue.Front, bool, error) {
	return s.queue.Front(tx, l, s.quarantinedIn(tx.Tenant()))
}

// claimed says what came of one attempt to take a task.
type claimed int

const (
	taken      claimed = iota
	notAllowed         // it has to pass its gate again first
	overBudget         // a budget's approval decides; it keeps its place
)

// take turns the queued task at a front into a running one, which is t then.
func (s *Swarm) take(tx *audit.Tx, worker string, f queue.Front, t *task.Task) (_ claimed, err error) {
	seq := f.Seq()
	if err := s.tasks.Load(tx, seq, t); err != nil {
		return notAllowed, err
	}
	if t.Status != task.Queued {
		return notAllowed, task.Damaged(t.TenantID, seq, fmt.Errorf("it is %s, and kept among the queued", t.Status))
	}
	if at := t.StartBy(); !at.IsZero() && !at.After(tx.Now()) {
		return notAllowed, s.tooLate(tx, t)
	}
	if t.StartedAt.IsZero() && s.Budgets.Full(tx, spender(t)) {
		if of := s.Budgets.Denied(tx.Tenant(), spender(t), false); of != "" {
			return notAllowed, s.end(tx, t, denied(of))
		}
		return overBudget, nil
	}
	if err := s.queue.Take(tx, f); err != nil {
		return notAllowed, err
	}
	if t.Input, err = s.tasks.Input(tx, seq); err != nil {
		return notAllowed, fmt.Errorf("read input of task %s: %w", t.TaskID, err)
	}
	if ok, err := s.stillAllowed(tx, t, worker); err != nil || !ok {
		return notAllowed, err
	}
	if t.StartedAt.IsZero() { // a further attempt is not a further task
		s.Budgets.Start(tx, spender(t))
	}
	if err := s.started(tx, t); err != nil {
		return notAllowed, err
	}
	t.Status, t.Worker, t.Lease, t.Sent = task.Running, worker, uint64(tx.Add(countLease, 1)), false
	t.StartedAt, t.RunAt = tx.Now(), time.Time{}
	detail := core.BeginObject(tx.Alloc(len(worker) + 48))
	detail.Text("worker", worker)
	detail.Nonzero("lease", t.Lease)
	if err := s.tasks.Move(tx, t, task.Queued, "worker.consumed", detail.End()); err != nil {
		return notAllowed, err
	}
	l := newLease(t)
	tx.OnCommit(func() { s.leased(l) })
	return taken, nil
}

// stillAllowed is the check at the start of the effect (requirement 2.4): the
// approval must stand for exactly these arguments, and the rules that let the
// task in must still rule. Otherwise the task goes back to its gate. Where the
// work depends on files, confirm looks at the approval.
func (s *Swarm) stillAllowed(tx *audit.Tx, t *task.Task, worker string) (bool, error) {
	if t.ApprovalID == "" && t.Policy == s.judge.PolicyVersion(t.TenantID) {
		return true, nil
	}
	if t.ApprovalID != "" && s.binds(t, worker) {
		return true, nil
	}
	if t.ApprovalID != "" {
		ask, err := s.startAsk(t, t.Input)
		if err == nil {
			ask.Action.Files, err = s.judge.ApprovedFiles(tx, t.ApprovalID)
		}
		if err == nil {
			ok, err := s.judge.Start(tx, t.ApprovalID, ask.Ask)
			if err != nil || ok {
				return ok, err
			}
		}
	}
	return false, s.regate(tx, t, tx.Now(), "task.regate", nil)
}
