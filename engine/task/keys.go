package task

import (
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Buckets of a tenant. A task's number is its key, or the end of it.
const (
	bTask    store.Bucket = "task"       // seq → Task header
	bInput   store.Bucket = "task.input" // seq → input; written once, and where an approval edits it
	bResult  store.Bucket = "result"     // seq → Result
	bLive    store.Bucket = "live"       // 'q' or 'r', seq: queued and running tasks
	bRare    store.Bucket = "rare"       // first letters of a rare terminal status, seq
	bAfter   store.Bucket = "after"      // seq waited for, seq that waits
	bChild   store.Bucket = "child"      // parent seq, seq
	bOfAgent store.Bucket = "of.agent"   // agent, 0, seq
	bOfSes   store.Bucket = "of.session" // session id, 0, seq
	bLog     store.Bucket = "log"        // stream, 0, seq → LogLine
)

// Counters of a tenant.
const (
	countTasks   = "task"
	countWaiting = "task.waiting"
)

func allTasks() record.Dense { return record.Dense{Bucket: bTask, Count: countTasks} }

// countOf counts the tasks of one agent or session, as its index lists them.
func countOf(b store.Bucket, name string) string { return string(b) + "." + name }

func countStatus(s Status) string {
	switch s { // constants: each transition asks twice
	case Queued:
		return "task.status.queued"
	case Running:
		return "task.status.running"
	case Succeeded:
		return "task.status.succeeded"
	}
	return "task.status." + string(s)
}

// RunningIn is how many tasks run, as a transaction sees it.
func RunningIn(tx store.Tx) int64 { return tx.Counter(countStatus(Running)) }

// keyIn is a task's key in the memory of a transaction.
func keyIn(tx store.Tx, seq uint64) record.Key { return record.Key(tx.Alloc(8)).Seq(seq) }

func liveKey(tx store.Tx, s Status, seq uint64) record.Key {
	return record.Key(tx.Alloc(9)).Byte(s[0]).Seq(seq)
}

func rareKey(tx store.Tx, s Status, seq uint64) record.Key {
	return record.Key(tx.Alloc(10)).Last(string(s[:2])).Seq(seq)
}

// rare reports whether finished tasks of this status are indexed: succeeded
// ones are the bulk, and reading the history finds them at once.
func rare(s Status) bool { return s.Terminal() && s != Succeeded }

// index is a history list that a task is in from birth.
type index struct {
	bucket store.Bucket
	key    record.Key
	count  string // counter of what the list holds
}

// indexes are the lists beside the main one. A plain task is in none.
func (t *Task) indexes() []index {
	seq := t.Seq()
	var out []index
	if t.Agent != "" {
		out = append(out, index{bOfAgent, record.Text(t.Agent).Seq(seq), countOf(bOfAgent, t.Agent)})
	}
	if t.SessionID != "" {
		out = append(out, index{bOfSes, record.Text(t.SessionID).Seq(seq), countOf(bOfSes, t.SessionID)})
	}
	if t.ParentTaskID != "" {
		out = append(out, index{bChild, record.Seq(Seq(t.ParentTaskID)).Seq(seq), ""})
	}
	return out
}
