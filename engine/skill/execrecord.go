package skill

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Executions by their subagent, skill, status and task.
const (
	bExecAgent  store.Bucket = "execution.agent"
	bExecSkill  store.Bucket = "execution.skill" // with status and duration of one that is over
	bExecStatus store.Bucket = "execution.status"
	bExecTask   store.Bucket = "execution.task"
)

func (s *Skills) execKind() record.Kind[Execution] {
	return record.Kind[Execution]{
		Noun: "execution", Bucket: "execution", Ledger: s.ledger,
		ID: func(e *Execution) string { return e.ExecutionID }, Number: record.UUIDs("execution_id"),
		Head: func(e *Execution) record.Head {
			return record.Head{Tenant: &e.TenantID, Created: &e.StartedAt, Seq: &e.AuditSeq}
		},
		State: func(e *Execution) any { return e.audited() },
		Indexes: []record.Index[Execution]{
			{Bucket: bExecAgent, Count: string(bExecAgent), Word: func(e *Execution) string { return e.AgentID }},
			{Bucket: bExecSkill, Count: string(bExecSkill), Word: func(e *Execution) string { return e.SkillName }, Value: outcomeOf},
			{Bucket: bExecStatus, Count: string(bExecStatus), Word: func(e *Execution) string { return string(e.Status) }},
			{Bucket: bExecTask, Word: func(e *Execution) string { return e.TaskID }},
		},
	}
}

// saveExec writes an execution in place of old, which is nil for a new one; that
// is given its id.
func (s *Skills) saveExec(tx *audit.Tx, old, e *Execution, event string, detail any) error {
	if old == nil {
		e.ExecutionID = core.NewUUID(tx.Tenant(), s.execs.Next(tx), nil)
	}
	return s.execs.Save(tx, record.Event{Type: event, Trace: e.TraceID, Detail: detail}, old, e)
}

// outcomeOf is what figures need of an execution that is over: whether it
// succeeded, failed or was interrupted, and how long it took.
func outcomeOf(e *Execution) []byte {
	if e.Status == StatusPending {
		return nil
	}
	how := e.Status[0]
	if e.Interrupted {
		how = 'i'
	}
	return record.Key(nil).Byte(how).Seq(uint64(e.DurationMS))
}

// ofTask is the key of what is kept of a task, by an id that the swarm made.
func ofTask(id string) record.Key {
	_, _, n, _ := core.ParseID(id)
	return record.Seq(n)
}
