package swarm

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// lane is one queue: the tasks of one session for one agent. A session that
// is paused or an agent that is busy closes its lanes, so a claim never walks
// over tasks it can't have.
type lane struct{ session, agent string }

func (l lane) prefix() []byte {
	b := make([]byte, 0, len(l.session)+len(l.agent)+11)
	b = append(append(b, l.session...), 0)
	return append(append(b, l.agent...), 0)
}

// key sorts by priority, highest first, then by age.
func (l lane) key(priority int, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append(l.prefix(), byte(255-priority)), seq)
}

func laneOf(key []byte) (lane, bool) {
	session, rest, ok := bytes.Cut(key, []byte{0})
	if !ok {
		return lane{}, false
	}
	agent, _, ok := bytes.Cut(rest, []byte{0})
	return lane{string(session), string(agent)}, ok
}

// lanesIn lists the lanes that hold tasks, in one seek each.
func lanesIn(tx store.Tx) ([]lane, error) {
	var out []lane
	var from []byte
	for {
		found := false
		err := tx.Scan(bReady, from, nil, false, func(key, _ []byte) bool {
			if l, ok := laneOf(key); ok {
				out = append(out, l)
				_, from = span(l.prefix())
				found = true
			}
			return false
		})
		if err != nil || !found || from == nil {
			return out, err
		}
	}
}

func (s *Swarm) laneFilled(tenant string, l lane) {
	s.mu.Lock()
	s.world(tenant).lanes[l] = struct{}{}
	s.mu.Unlock()
	s.ring()
}

func (s *Swarm) laneEmptied(tenant string, l lane) {
	s.mu.Lock()
	delete(s.world(tenant).lanes, l)
	s.mu.Unlock()
}

// Claim gives worker up to n claimable tasks, the highest priority and the
// oldest first, each under a lease that Beat keeps. Tasks for agents that are
// not free, of sessions that do not run, and everything during an emergency
// stop stay where they are.
func (s *Swarm) Claim(ctx context.Context, by core.Caller, worker string, n int) ([]Task, error) {
	if n < 1 || n > 1000 {
		return nil, core.Invalid("n", n, "1-1000")
	}
	if worker == "" || len(worker) > 128 {
		return nil, core.Invalid("worker", worker, "1-128 characters")
	}
	return s.claim(ctx, by, worker, n, s.openLanes(by.Tenant, n, n))
}

// openLanes are the lanes a claim may take from now: general ones when slots
// are left, agent ones whose agent is free.
func (s *Swarm) openLanes(tenant string, general, agents int) []lane {
	s.mu.Lock()
	w := s.world(tenant)
	if w.estop.On {
		s.mu.Unlock()
		return nil
	}
	at := map[string]bool{} // agents at work
	for _, l := range s.leases {
		if l.tenant == tenant && l.agent != "" {
			at[l.agent] = true
		}
	}
	out := make([]lane, 0, len(w.lanes))
	for l := range w.lanes {
		if at[l.agent] || l.session != "" && w.sessions[l.session] != SessionRunning || w.reached(l) != "" {
			continue
		}
		out = append(out, l)
	}
	runner := s.runners["agent.prompt"]
	s.mu.Unlock()
	// Slot is the fleet's: it may take its own lock, so ask without ours.
	keep := out[:0]
	for _, l := range out {
		switch {
		case l.agent == "":
			if general > 0 {
				keep = append(keep, l)
			}
		case agents > 0 && runner != nil:
			if free, _ := runner.Slot(tenant, l.agent); free {
				keep = append(keep, l)
			}
		}
	}
	return keep
}

func (s *Swarm) claim(ctx context.Context, by core.Caller, worker string, n int, lanes []lane) ([]Task, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	var out []Task
	err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		out = nil
		if tx.Counter(countEStop) != 0 {
			return nil
		}
		open := lanes
		for len(out) < n && len(open) > 0 {
			best, key, left, err := s.bestLane(tx, open)
			if err != nil || key == nil {
				return err
			}
			open = left
			t, took, err := s.take(tx, worker, key)
			if err != nil {
				return err
			}
			if took == taken {
				out = append(out, t)
			}
			switch {
			case took == taken && best.agent != "": // one task at a time
				open = without(open, func(l lane) bool { return l.agent == best.agent })
			case took == overBudget:
				open = without(open, func(l lane) bool { return l == best })
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return out, nil
}

// bestLane finds the first key over all lanes, and drops the empty ones.
func (s *Swarm) bestLane(tx *audit.Tx, lanes []lane) (best lane, key []byte, left []lane, err error) {
	left = make([]lane, 0, len(lanes))
	for _, l := range lanes {
		var head []byte
		from, to := span(l.prefix())
		err = tx.Scan(bReady, from, to, false, func(k, _ []byte) bool {
			head = append([]byte(nil), k...)
			return false
		})
		if err != nil {
			return best, nil, nil, err
		}
		if head == nil {
			tx.OnCommit(func() { s.laneEmptied(tx.Tenant(), l) })
			continue
		}
		if l.session != "" {
			var ses Session
			if err := load(tx, bSession, key8(taskSeq(l.session)), "session", l.session, &ses); err != nil {
				return best, nil, nil, err
			}
			if ses.State != SessionRunning {
				continue // paused in this very commit
			}
		}
		left = append(left, l)
		// The last 9 bytes are priority and age: comparable across lanes.
		if key == nil || bytes.Compare(head[len(head)-9:], key[len(key)-9:]) < 0 {
			best, key = l, head
		}
	}
	return best, key, left, nil
}

// claimed says what came of one attempt to take a task.
type claimed int

const (
	taken      claimed = iota
	notAllowed         // it has to pass its gate again first
	overBudget         // a budget's approval decides; it keeps its place
)

// take turns the queued task under key into a running one.
func (s *Swarm) take(tx *audit.Tx, worker string, key []byte) (Task, claimed, error) {
	seq := seqAt(key)
	var t Task
	if err := s.heads.load(tx, seq, &t); err != nil {
		return t, notAllowed, err
	}
	if s.overTasks(tx, &t) {
		return t, overBudget, nil
	}
	if err := tx.Delete(bReady, key); err != nil {
		return t, notAllowed, err
	}
	input, err := tx.Get(bInput, key8(seq))
	if err != nil {
		return t, notAllowed, fmt.Errorf("read input of task %s: %w", t.TaskID, err)
	}
	t.Input = append(core.Raw(nil), input...)
	if ok, err := s.stillAllowed(tx, &t); err != nil || !ok {
		return t, notAllowed, err
	}
	for _, subject := range (lane{t.SessionID, t.Agent}).subjects() {
		tx.Add(countUse("tasks", subject), 1)
	}
	t.Status, t.Worker, t.Lease = Running, worker, uint64(tx.Add(countLease, 1))
	t.StartedAt, t.RunAt, t.Paused = tx.Now(), time.Time{}, false
	detail := append(core.Raw(nil), `{"worker":`...)
	detail = append(detail, core.MustEncode(worker)...)
	detail = append(detail, `,"lease":`...)
	detail = fmt.Appendf(detail, "%d}", t.Lease)
	if err := s.move(tx, &t, Queued, "worker.consumed", detail); err != nil {
		return t, notAllowed, err
	}
	c := t
	tx.OnCommit(func() { s.leased(&c, worker) })
	return t, taken, nil
}

// stillAllowed is the check at the start of the effect (approvals R1, R4): the
// approval must stand for exactly these arguments, and the rules that let the
// task in must still rule. Otherwise the task goes back to its gate.
func (s *Swarm) stillAllowed(tx *audit.Tx, t *Task) (bool, error) {
	if t.ApprovalID == "" && t.Policy == s.judge.PolicyVersion(t.TenantID) {
		return true, nil
	}
	if t.ApprovalID != "" {
		ask, err := s.startAsk(t, t.Input)
		if err == nil {
			ok, err := s.judge.Start(tx, t.ApprovalID, ask.Ask)
			if err != nil || ok {
				return ok, err
			}
		}
	}
	return false, s.regate(tx, t, tx.Now(), "task.regate", nil)
}

// regate sends a queued task back to the judge at a time.
func (s *Swarm) regate(tx *audit.Tx, t *Task, at time.Time, event string, detail core.Raw) error {
	t.ApprovalID, t.RunAt = "", at
	if err := s.move(tx, t, Queued, event, detail); err != nil {
		return err
	}
	return s.schedule(tx, t)
}

func (s *Swarm) schedule(tx *audit.Tx, t *Task) error {
	at := t.RunAt
	tx.OnCommit(func() { s.dueAt(t.TenantID, at) })
	return tx.Put(bDue, dueKey(at, taskSeq(t.TaskID)), nil)
}

func (s *Swarm) dueAt(tenant string, at time.Time) {
	s.mu.Lock()
	if w := s.world(tenant); w.nextDue.IsZero() || at.Before(w.nextDue) {
		w.nextDue = at
	}
	s.mu.Unlock()
	s.ring()
}

func without(lanes []lane, drop func(lane) bool) []lane {
	return slices.DeleteFunc(slices.Clone(lanes), drop)
}
