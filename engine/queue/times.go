package queue

import (
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Times are tasks by a time of theirs.
type Times store.Bucket

// The times that tasks wait for.
const (
	Gate    Times = "due"      // to be gated (again) then
	StartBy Times = "start.by" // must have started by then
)

func timeKey(at time.Time, seq uint64) record.Key { return record.Key(nil).Time(at).Seq(seq) }

// Entry is a task with its time.
type Entry struct {
	At  time.Time
	Seq uint64
}

func entryOf(key []byte) Entry {
	p := record.Parts(key)
	return Entry{At: p.Time(), Seq: record.LastSeq(key)}
}

// At gives a task a time.
func (q *Queue) At(tx *audit.Tx, of Times, e Entry) error {
	tenant := tx.Tenant()
	tx.OnCommit(func() { q.DueAt(tenant, e.At) })
	return tx.Put(store.Bucket(of), timeKey(e.At, e.Seq), nil)
}

// Has reports whether a task still has that time.
func (of Times) Has(tx *audit.Tx, e Entry) (bool, error) {
	there, err := tx.Get(store.Bucket(of), timeKey(e.At, e.Seq))
	return there != nil, err
}

// Drop takes that time from a task.
func (of Times) Drop(tx *audit.Tx, e Entry) error {
	return tx.Delete(store.Bucket(of), timeKey(e.At, e.Seq))
}

// Due are the tasks whose time has come by now, the earliest first, at most n,
// and when the next one's comes, zero for none. Those that skip names are
// passed over.
func (of Times) Due(tx *audit.Tx, now time.Time, n int, skip func(seq uint64) bool) (due []Entry, next time.Time, err error) {
	err = tx.Scan(store.Bucket(of), nil, nil, false, func(key, _ []byte) (bool, error) {
		e := entryOf(key)
		if skip(e.Seq) {
			return true, nil
		}
		if e.At.After(now) || len(due) == n {
			next = e.At
			return false, nil
		}
		due = append(due, e)
		return true, nil
	})
	return due, next, err
}

// first is the earliest time, zero for none.
func (of Times) first(tx *audit.Tx, skip func(seq uint64) bool) (time.Time, error) {
	_, next, err := of.Due(tx, time.Time{}, 0, skip)
	return next, err
}

// NextDue is when the scheduler must look at the Times of a tenant, zero when no
// time is known.
func (q *Queue) NextDue(tenant string) (at time.Time) {
	q.change(tenant, func(w *waiting) { at = w.next })
	return at
}

// Look forgets when the scheduler must look: it does so now, and commits from
// here on say it again.
func (q *Queue) Look(tenant string) {
	q.change(tenant, func(w *waiting) { w.next = time.Time{} })
}

// Looked has it look again at that time, zero for none.
func (q *Queue) Looked(tenant string, next time.Time) {
	q.change(tenant, func(w *waiting) { w.next = Earlier(next, w.next) })
}

// DueAt has the scheduler look at that time, zero for none.
func (q *Queue) DueAt(tenant string, at time.Time) {
	q.Looked(tenant, at)
	q.ring()
}

// Earlier is the earlier of two times; a zero one is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
