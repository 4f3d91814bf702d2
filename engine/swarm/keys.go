package swarm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Buckets of a tenant. Keys are big-endian so that they sort as they are read.
const (
	bTenant   store.Bucket = "tenant"
	bSession  store.Bucket = "session"          // seq → Session
	bNames    store.Bucket = "session.name"     // name of a live session → its id
	bStopping store.Bucket = "session.stopping" // seq of a stopped session that still holds tasks → why
	bTask     store.Bucket = "task"             // seq → Task header
	bInput    store.Bucket = "task.input"       // seq → input; written once
	bResult   store.Bucket = "result"           // task seq → Result
	bParked   store.Bucket = "parked"           // task seq → Outcome that waits at the result gate
	bReady    store.Bucket = "ready"            // lane, 255-priority, seq
	bDue      store.Bucket = "due"              // run-at µs, seq: to be gated (again) then
	bStartBy  store.Bucket = "start.by"         // deadline µs, seq: tasks that must have started by then
	bLive     store.Bucket = "live"             // 'q' or 'r', seq: queued and running tasks
	bRare     store.Bucket = "rare"             // first letters of a rare terminal status, seq
	bAfter    store.Bucket = "after"            // seq waited for, seq that waits
	bChild    store.Bucket = "child"            // parent seq, seq
	bOfAgent  store.Bucket = "of.agent"         // agent, 0, seq
	bOfSes    store.Bucket = "of.session"       // session id, 0, seq
	bIdem     store.Bucket = "idem"             // sha256 of the key → seq and request digest
	bIdemOf   store.Bucket = "idem.of"          // task seq → key in idem
	bBudget   store.Bucket = "budget"           // subject → Budget
	bEStop    store.Bucket = "estop"
	bRunning  store.Bucket = "running" // seq of a running task → how long it ran up to now; see ranFor
	bLog      store.Bucket = "log"     // stream, 0, seq → LogLine
)

// Counters of a tenant.
const (
	countTasks   = "task"
	countLease   = "lease"
	countWaiting = "task.waiting"
	countEStop   = "estop.on"
)

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

var keyTenant = []byte("tenant")

func key8(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// keyIn is key8 in the memory of a transaction.
func keyIn(tx store.Tx, n uint64) []byte { return binary.BigEndian.AppendUint64(tx.Alloc(8), n) }

func seqAt(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

func pairKey(a, b uint64) []byte { return binary.BigEndian.AppendUint64(key8(a), b) }

func dueKey(at time.Time, seq uint64) []byte { return pairKey(uint64(at.UnixMicro()), seq) }

func dueTime(key []byte) time.Time {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(key))).UTC()
}

// nameKey puts a name before a number. Names hold no zero byte.
func nameKey(name string, seq uint64) []byte {
	b := make([]byte, 0, len(name)+9)
	b = append(append(b, name...), 0)
	return binary.BigEndian.AppendUint64(b, seq)
}

// span is the range of keys that begin with prefix.
func span(prefix []byte) (from, to []byte) { return spanIn(nil, prefix) }

// spanIn is span in memory that has room for it.
func spanIn(room, prefix []byte) (from, to []byte) {
	to = append(room, prefix...)
	for i := len(to) - 1; i >= 0; i-- {
		if to[i]++; to[i] != 0 {
			return prefix, to[:i+1]
		}
	}
	return prefix, nil
}

func nameSpan(name string) (from, to []byte) { return span(append([]byte(name), 0)) }

func liveKey(tx store.Tx, s Status, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append(tx.Alloc(9), s[0]), seq)
}

func rareKey(tx store.Tx, s Status, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append(tx.Alloc(10), s[:2]...), seq)
}

// rare reports whether finished tasks of this status are indexed: succeeded
// ones are the bulk, and reading the history finds them at once.
func rare(s Status) bool { return s.Terminal() && s != Succeeded }

// load reads one record into v, or reports it missing.
func load(tx store.Tx, b store.Bucket, key []byte, kind, id string, v any) error {
	data, err := tx.Get(b, key)
	if errors.Is(err, store.ErrCorrupt) {
		return &core.Damaged{Noun: kind, Key: id, Err: err}
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", kind, id, err)
	}
	if data == nil {
		return core.Missing(kind, id)
	}
	if err := core.DecodeStored(data, v); err != nil {
		return &core.Damaged{Noun: kind, Key: id, Err: err}
	}
	return nil
}

// loadTask reads a task's header by its number; one that says what can't be is
// core.Damaged.
func loadTask(tx *audit.Tx, seq uint64, t *Task) error {
	id := core.NewID(core.TaskPrefix, tx.Tenant(), seq)
	if err := load(tx, bTask, keyIn(tx, seq), "task", id, t); err != nil {
		return err
	}
	if why := t.impossible(tx.Tenant(), id); why != "" {
		return damagedTask(tx.Tenant(), seq, errors.New(why))
	}
	return nil
}

func taskSeq(id string) uint64 {
	_, _, seq, _ := core.ParseID(id)
	return seq
}

// matches applies the filter's fields to one record's.
func matches(f core.Filter, status, agent, kind, session, trace string, at time.Time, texts ...string) bool {
	if f.Status != "" && f.Status != status || f.Agent != "" && f.Agent != agent ||
		f.Kind != "" && f.Kind != kind || f.Session != "" && f.Session != session || f.Trace != "" && f.Trace != trace {
		return false
	}
	if !f.Since.IsZero() && at.Before(f.Since) || !f.Until.IsZero() && at.After(f.Until) {
		return false
	}
	if f.Match == "" {
		return true
	}
	want := strings.ToLower(f.Match)
	for _, text := range texts {
		if strings.Contains(strings.ToLower(text), want) {
			return true
		}
	}
	return false
}
