// Package queue keeps which tasks may be claimed, in which order, and when the
// others are due. It knows tasks by their numbers only.
//
// Tasks that are ready lie in lanes, one for each session and agent: a session
// that is paused or an agent that is busy closes its lanes, so a claim never
// walks over tasks it can't have. Tasks that wait for a time lie in Times.
//
// What is in memory is changed only after commits, so it never runs ahead of
// the disk. Functions given to Lanes and Alone are called with a lock held: they
// must not call the queue.
package queue

import (
	"errors"
	"sync"
	"time"

	"swarmdeck/engine/audit"
)

// Queue is the queue of all tenants.
type Queue struct {
	ring func()

	mu      sync.Mutex
	tenants map[string]*waiting
}

// waiting is what is kept in memory of a tenant.
type waiting struct {
	lanes map[Lane]struct{} // that hold tasks, or did when last looked at
	next  time.Time         // earliest entry of all Times; zero when none is known
}

// New makes one. ring is called after each commit that made a task claimable or
// gave it a time; it must be quick.
func New(ring func()) *Queue { return &Queue{ring: ring, tenants: map[string]*waiting{}} }

// change changes what is in memory of a tenant.
func (q *Queue) change(tenant string, fn func(*waiting)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.tenants[tenant]
	if w == nil {
		w = &waiting{lanes: map[Lane]struct{}{}}
		q.tenants[tenant] = w
	}
	fn(w)
}

// Read takes over what is on disk of a tenant. Its cost is the lanes, not the
// tasks.
func (q *Queue) Read(tx *audit.Tx) error {
	lanes, err := lanesIn(tx)
	q.change(tx.Tenant(), func(w *waiting) {
		for _, l := range lanes {
			w.lanes[l] = struct{}{}
		}
		for _, of := range []Times{Gate, StartBy} {
			at, scanned := of.first(tx, func(uint64) bool { return false })
			w.next, err = Earlier(at, w.next), errors.Join(err, scanned)
		}
	})
	return err
}

// Lanes are the lanes of a tenant that hold tasks and are open.
func (q *Queue) Lanes(tenant string, open func(Lane) bool) []Lane {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.tenants[tenant]
	if w == nil {
		return nil
	}
	out := make([]Lane, 0, len(w.lanes))
	for l := range w.lanes {
		if open(l) {
			out = append(out, l)
		}
	}
	return out
}

// Alone are the open lanes of a tenant when no other tenant has any.
func (q *Queue) Alone(tenant string, open func(tenant string, l Lane) bool) (out []Lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, w := range q.tenants {
		for l := range w.lanes {
			switch {
			case !open(id, l):
			case id != tenant:
				return nil
			default:
				out = append(out, l)
			}
		}
	}
	return out
}

// Forget forgets the lanes of a session, whose tasks are not claimed any more.
func (q *Queue) Forget(tenant, session string) {
	q.change(tenant, func(w *waiting) {
		for l := range w.lanes {
			if l.Session == session {
				delete(w.lanes, l)
			}
		}
	})
}
