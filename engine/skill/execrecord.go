package skill

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Buckets of executions in a tenant.
const (
	bExec       store.Bucket = "execution"        // number → Execution
	bExecAgent  store.Bucket = "execution.agent"  // agent id, 0, number
	bExecSkill  store.Bucket = "execution.skill"  // skill name, 0, number → status and duration of one that is over
	bExecStatus store.Bucket = "execution.status" // status, 0, number
	bExecTask   store.Bucket = "execution.task"   // task number, number
)

const countExecs = "execution"

// countExecsOf counts the executions of one agent, skill or status, as its
// index lists them.
func countExecsOf(b store.Bucket, word string) string { return string(b) + "." + word }

// newExec gives an execution its id and its places in the indexes.
func newExec(tx *audit.Tx, e *Execution) error {
	n := uint64(tx.Add(countExecs, 1))
	e.TenantID, e.ExecutionID = tx.Tenant(), core.NewUUID(tx.Tenant(), n, nil)
	for _, ix := range []struct {
		bucket store.Bucket
		word   string
	}{{bExecAgent, e.AgentID}, {bExecSkill, e.SkillName}} {
		if err := tx.Put(ix.bucket, wordKey(ix.word, n), nil); err != nil {
			return err
		}
		tx.Add(countExecsOf(ix.bucket, ix.word), 1)
	}
	return tx.Put(bExecTask, append(numberKey(taskNumber(e.TaskID)), numberKey(n)...), nil)
}

// saveExec writes an execution with its audit event. was is the status before,
// "" for a new one. It is the only way an execution changes.
func saveExec(tx *audit.Tx, e *Execution, was Status, event string, detail any) error {
	if e.ExecutionID == "" {
		if err := newExec(tx, e); err != nil {
			return err
		}
	}
	seq, err := tx.Record(audit.Entry{
		Type: event, Trace: e.TraceID, Subject: "execution", ID: e.ExecutionID, State: e.audited(), Detail: detail, Prev: e.AuditSeq,
	})
	if err != nil {
		return err
	}
	e.AuditSeq = seq
	n, err := core.LocalUUID("execution_id", e.TenantID, e.ExecutionID)
	if err != nil {
		return err
	}
	if was != e.Status {
		if err := reindexExec(tx, e, was, n); err != nil {
			return err
		}
	}
	c := *e
	data, err := core.Encode(&c)
	if err != nil {
		return fmt.Errorf("encode execution %s: %w", e.ExecutionID, err)
	}
	tx.Changed("execution", e.ExecutionID, &c)
	return tx.Put(bExec, numberKey(n), data)
}

func reindexExec(tx *audit.Tx, e *Execution, was Status, n uint64) error {
	if was != "" {
		tx.Add(countExecsOf(bExecStatus, string(was)), -1)
		if err := tx.Delete(bExecStatus, wordKey(string(was), n)); err != nil {
			return err
		}
	}
	tx.Add(countExecsOf(bExecStatus, string(e.Status)), 1)
	if e.Status != StatusPending {
		if err := tx.Put(bExecSkill, wordKey(e.SkillName, n), outcomeOf(e)); err != nil {
			return err
		}
	}
	return tx.Put(bExecStatus, wordKey(string(e.Status), n), nil)
}

// outcomeOf is what figures need of an execution that is over: whether it
// succeeded, failed or was interrupted, and how long it took.
func outcomeOf(e *Execution) []byte {
	b := []byte{e.Status[0]}
	if e.Interrupted {
		b[0] = 'i'
	}
	return binary.BigEndian.AppendUint64(b, uint64(e.DurationMS))
}

// sum is the sha256 of a text, "" of none.
func sum(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
