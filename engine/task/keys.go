package task

import (
	"bytes"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
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

// audited is what reconcile compares tasks with the audit log by.
type audited struct{}

func (audited) Subject() string { return "task" }

func (audited) States(tx store.Tx, each func(id string, state any) error) error {
	return tx.Scan(bTask, nil, nil, false, func(key, value []byte) (bool, error) {
		var t Task
		if len(key) != 8 || core.DecodeStored(value, &t) != nil {
			return true, nil // the digest differs
		}
		return true, each(core.NewID(core.TaskPrefix, tx.Tenant(), record.LastSeq(key)), t.appendState(nil))
	})
}

func (audited) Derives() []string {
	names := []string{"#" + countBytes("*"), "#" + countWaiting, "#" + countStatus("*"), "#" + countOf(bOfAgent, "*"), "#" + countOf(bOfSes, "*")}
	return append(names, core.Strings(bLive, bRare, bOfAgent, bOfSes, bChild)...)
}

// Derive implements audit.Deriver: the lists that tasks are in by their headers
// alone, and what is counted of them and of the lines of logs.
func (audited) Derive(tx store.Tx, d *audit.Derivation) error {
	counts := map[string]int64{}
	err := tx.Scan(bTask, nil, nil, false, func(key, value []byte) (bool, error) {
		var t Task
		if len(key) != 8 || core.DecodeStored(value, &t) != nil || len(t.Status) < 2 {
			return true, nil // its digest differs
		}
		seq := record.LastSeq(key)
		counts[countStatus(t.Status)]++
		if t.Waiting != "" {
			counts[countWaiting]++
		}
		switch {
		case !t.Status.Terminal():
			d.Row(bLive, liveKey(tx, t.Status, seq), nil)
		case rare(t.Status):
			d.Row(bRare, rareKey(tx, t.Status, seq), nil)
		}
		for _, ix := range t.indexes() {
			d.Row(ix.bucket, ix.key, nil)
			if ix.count != "" {
				counts[ix.count]++
			}
		}
		return true, nil
	})
	if err == nil {
		err = tx.Scan(bLog, nil, nil, false, func(key, value []byte) (bool, error) {
			if stream, _, _ := bytes.Cut(key, []byte{0}); bounded(string(stream)) {
				counts[countBytes(string(stream))] += int64(len(value))
			}
			return true, nil
		})
	}
	for name, n := range counts {
		d.Count(name, n)
	}
	return err
}
