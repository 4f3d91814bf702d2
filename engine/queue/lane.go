package queue

import (
	"bytes"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// bReady has the lane, 255-priority and the number of each task.
const bReady store.Bucket = "ready"

// Lane is one queue: the tasks of one session for one agent, "" for none.
type Lane struct{ Session, Agent string }

func (l Lane) prefix(tx store.Tx) record.Key {
	return record.Key(tx.Alloc(len(l.Session) + len(l.Agent) + 11)).Text(l.Session).Text(l.Agent)
}

// key sorts by priority, highest first, then by age.
func (l Lane) key(tx store.Tx, priority int, seq uint64) record.Key {
	return l.prefix(tx).Byte(byte(255 - priority)).Seq(seq)
}

func laneOf(key []byte) (Lane, bool) {
	session, rest, ok := bytes.Cut(key, []byte{0})
	if !ok {
		return Lane{}, false
	}
	agent, _, ok := bytes.Cut(rest, []byte{0})
	return Lane{string(session), string(agent)}, ok
}

// lanesIn lists the lanes that hold tasks, in one seek each.
func lanesIn(tx store.Tx) ([]Lane, error) {
	var out []Lane
	var from []byte
	for {
		found := false
		err := tx.Scan(bReady, from, nil, false, func(key, _ []byte) (bool, error) {
			if l, ok := laneOf(key); ok {
				out = append(out, l)
				_, from = l.prefix(tx).Under()
				found = true
			}
			return false, nil
		})
		if err != nil || !found || from == nil {
			return out, err
		}
	}
}

// Put makes a task claimable.
func (q *Queue) Put(tx *audit.Tx, l Lane, priority int, seq uint64) error {
	tenant := tx.Tenant()
	tx.OnCommit(func() {
		q.change(tenant, func(w *waiting) { w.lanes[l] = struct{}{} })
		q.ring()
	})
	return tx.Put(bReady, l.key(tx, priority, seq), nil)
}

// Drop takes a task out of its lane, if it is there.
func (q *Queue) Drop(tx *audit.Tx, l Lane, priority int, seq uint64) error {
	return tx.Delete(bReady, l.key(tx, priority, seq))
}

// Front is the first task of a lane.
type Front struct {
	Lane Lane
	key  []byte
}

// Seq is the number of the task.
func (f Front) Seq() uint64 { return record.LastSeq(f.key) }

// before compares by priority and age, the last 9 bytes of a key, across lanes.
func (f Front) before(g Front) bool {
	return bytes.Compare(f.key[len(f.key)-9:], g.key[len(g.key)-9:]) < 0
}

// First is the index of the front that is to be claimed first; there is one.
func First(fronts []Front) (best int) {
	for i := range fronts {
		if fronts[i].before(fronts[best]) {
			best = i
		}
	}
	return best
}

// Front is the first task of a lane that skip does not pass over; false for
// none. An empty lane is forgotten.
func (q *Queue) Front(tx *audit.Tx, l Lane, skip func(seq uint64) bool) (f Front, ok bool, err error) {
	from, tenant := l.prefix(tx), tx.Tenant()
	to := append(tx.Alloc(len(from)), from...)
	to[len(to)-1]++ // it ends with a zero
	err = tx.Scan(bReady, from, to, false, func(k, _ []byte) (bool, error) {
		if skip(record.LastSeq(k)) {
			return true, nil
		}
		f, ok = Front{l, append(tx.Alloc(len(k)), k...)}, true
		return false, nil
	})
	if !ok && err == nil {
		tx.OnCommit(func() { q.change(tenant, func(w *waiting) { delete(w.lanes, l) }) })
	}
	return f, ok, err
}

// Take takes the task at a front out of its lane.
func (q *Queue) Take(tx *audit.Tx, f Front) error { return tx.Delete(bReady, f.key) }

// Length counts the tasks of a lane that are ready, up to most.
func (q *Queue) Length(tx *audit.Tx, l Lane, most int) (n int, err error) {
	from, to := l.prefix(tx).Under()
	err = tx.Scan(bReady, from, to, false, func(_, _ []byte) (bool, error) {
		n++
		return n < most, nil
	})
	return n, err
}
