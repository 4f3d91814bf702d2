package swarm

import (
	"bytes"
	"encoding/binary"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// lane is one queue: the tasks of one session for one agent. A session that
// is paused or an agent that is busy closes its lanes, so a claim never walks
// over tasks it can't have.
type lane struct{ session, agent string }

func (l lane) spender() budget.Spender { return budget.Spender{Session: l.session, Agent: l.agent} }

func (l lane) prefix(tx store.Tx) []byte {
	b := tx.Alloc(len(l.session) + len(l.agent) + 11)
	b = append(append(b, l.session...), 0)
	return append(append(b, l.agent...), 0)
}

// key sorts by priority, highest first, then by age.
func (l lane) key(tx store.Tx, priority int, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append(l.prefix(tx), byte(255-priority)), seq)
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
				_, from = record.Key(l.prefix(tx)).Under()
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
	s.keep(tenant).lanes[l] = struct{}{}
	s.mu.Unlock()
	s.ring()
}

func (s *Swarm) laneEmptied(tenant string, l lane) {
	s.mu.Lock()
	delete(s.world(tenant).lanes, l)
	s.mu.Unlock()
}

// regate sends a queued task back to the judge at a time.
func (s *Swarm) regate(tx *audit.Tx, t *task.Task, at time.Time, event string, detail core.Raw) error {
	t.ApprovalID, t.RunAt = "", at
	if err := s.tasks.Move(tx, t, task.Queued, event, detail); err != nil {
		return err
	}
	return s.schedule(tx, t)
}

func (s *Swarm) schedule(tx *audit.Tx, t *task.Task) error {
	at := t.RunAt
	tx.OnCommit(func() { s.dueAt(t.TenantID, at) })
	return tx.Put(bDue, dueKey(at, t.Seq()), nil)
}

func (s *Swarm) dueAt(tenant string, at time.Time) {
	s.mu.Lock()
	w := s.keep(tenant)
	w.nextDue = earlier(at, w.nextDue)
	s.mu.Unlock()
	s.ring()
}

// earlier is the earlier of two times; a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
