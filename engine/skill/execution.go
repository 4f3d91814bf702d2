package skill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// Status is the model's ExecutionStatus.
type Status string

// The statuses of an execution.
const (
	StatusPending Status = "pending" // it runs
	StatusSuccess Status = "success"
	StatusFailed  Status = "failed"
	StatusTimeout Status = "timeout"
)

// Statuses are all of them.
func Statuses() []Status { return []Status{StatusPending, StatusSuccess, StatusFailed, StatusTimeout} }

// Execution is one run of one skill by a subagent (model 3, SkillExecution),
// retries included. A record is never modified.
type Execution struct {
	ExecutionID  string    `json:"execution_id"`
	AgentID      string    `json:"agent_id"`
	SkillName    string    `json:"skill_name"`
	SkillVersion string    `json:"skill_version"`
	Parameters   core.Raw  `json:"parameters"`
	Result       core.Raw  `json:"result,omitzero"`
	Error        string    `json:"error,omitempty"` // at most 1000 characters
	Status       Status    `json:"status"`
	StartedAt    time.Time `json:"started_at"`
	CompletedAt  time.Time `json:"completed_at,omitzero"`
	DurationMS   int64     `json:"duration_ms"`
	RetryCount   int       `json:"retry_count"` // at most the skill's max_retries

	TenantID  string `json:"tenant_id"`
	TraceID   string `json:"trace_id"`
	TaskID    string `json:"task_id"`
	SessionID string `json:"session_id,omitempty"`
	// Step is the place in the run: the skill's name, or for a step of a
	// composite the composite's place, a slash and the step's id.
	Step string `json:"step"`
	Kind string `json:"kind"` // of the runner
	// Digest is that of the definition that ran.
	Digest string `json:"digest"`
	// Interrupted says that it was ended from outside: the step is run again
	// when its task is.
	Interrupted bool `json:"interrupted,omitzero"`
	// How it failed, for the attempt after a kill: a denial must stay one.
	ErrorCode string `json:"error_code,omitempty"`
	Denied    bool   `json:"denied,omitzero"` // by the judge or a person
	Final     bool   `json:"final,omitzero"`  // nothing is to run in its place
	AuditSeq  uint64 `json:"audit_seq,omitzero"`

	left bool // no engine runs, so it does not either
}

// Broken reports that it was ended from outside, or that the end of its engine
// did so and the next one will record it.
func (e *Execution) Broken() bool { return e.Interrupted || e.left }

// end closes an execution. duration_ms is completed_at - started_at.
func (e *Execution) end(status Status, at time.Time) {
	e.Status, e.CompletedAt = status, at
	e.DurationMS = at.Sub(e.StartedAt).Milliseconds()
}

// maxExecutionError bounds Execution.Error, in bytes: no more than so many characters.
const maxExecutionError = 1000

// Executions by their subagent, skill, status and task.
const (
	bExecAgent  store.Bucket = "execution.agent"
	bExecSkill  store.Bucket = "execution.skill" // with status and duration of one that is over
	bExecStatus store.Bucket = "execution.status"
	bExecTask   store.Bucket = "execution.task"
)

func (s *Skills) execKind() record.Table[Execution] {
	return &record.Kind[*Execution]{
		Noun: "execution", Bucket: "execution", Ledger: s.ledger,
		ID: func(e *Execution) string { return e.ExecutionID }, Number: record.UUIDs("execution_id"),
		Head: func(e *Execution) record.Head {
			return record.Head{Tenant: &e.TenantID, Created: &e.StartedAt, Seq: &e.AuditSeq}
		},
		Says: "status retry_count", Personal: eraseExecution, Ended: s.ended, Fits: (*Execution).fits, Statuses: core.Strings(Statuses()...),
		Indexes: []record.Index[*Execution]{
			{Bucket: bExecAgent, Count: string(bExecAgent), Word: func(e *Execution) string { return e.AgentID }, By: func(f *core.Filter) *string { return &f.Agent }},
			{Bucket: bExecSkill, Count: string(bExecSkill), Word: func(e *Execution) string { return e.SkillName }, Value: outcomeOf},
			{Bucket: bExecStatus, Count: string(bExecStatus), Word: func(e *Execution) string { return string(e.Status) }, By: func(f *core.Filter) *string { return &f.Status }},
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
	err := s.execs.Save(tx, record.Event{Type: event, Trace: e.TraceID, Detail: detail}, old, e)
	if err == nil && s.opt.Record != nil {
		err = s.opt.Record.Execution(tx, old, e)
	}
	return err
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

// begin records an execution before its skill runs, and that the subagent is
// at it.
func (r *run) begin(ctx context.Context, k *Skill, params core.Raw, place string) (*Execution, error) {
	t := &r.job.Task
	e := &Execution{
		AgentID: r.agent, SkillName: k.Name, SkillVersion: k.Version, Parameters: params, Status: StatusPending,
		TraceID: t.TraceID, TaskID: t.TaskID, SessionID: t.SessionID, Step: place, Kind: k.Runner.Kind, Digest: k.Digest,
	}
	was := *e
	err := r.update(ctx, func(tx *audit.Tx) error {
		*e = was // it runs again where the disk was full
		a, err := r.s.agents.Need(tx, r.agent)
		if err != nil {
			return err
		}
		if a.State.Final() {
			return errLost
		}
		if err := r.s.saveExec(tx, nil, e, "execution.started", map[string]any{"agent_id": e.AgentID, "skill": k.Ref(), "step": e.Step, "task_id": e.TaskID}); err != nil {
			return err
		}
		old := *a
		a.AssignedSkill, a.SkillParams, a.Step = k.Name, params, place
		return r.s.saveAgent(tx, &old, a, "subagent.step", map[string]any{"execution_id": e.ExecutionID})
	})
	if err != nil {
		return nil, fmt.Errorf("begin %s: %w", place, err)
	}
	return e, nil
}

// retried records that an execution is tried once more.
func (r *run) retried(ctx context.Context, e *Execution, f *failure) error {
	was := *e
	return r.update(ctx, func(tx *audit.Tx) error {
		*e = was
		e.RetryCount++
		return r.s.saveExec(tx, &was, e, "execution.retried", map[string]any{"error": core.ClipTo(f.message, maxExecutionError)})
	})
}

// end closes an execution, keeps its result with the subagent and announces
// it, all in one transaction.
func (r *run) end(ctx context.Context, k *Skill, e *Execution, how func(*Execution)) error {
	was := *e
	err := r.update(ctx, func(tx *audit.Tx) error {
		*e = was
		how(e)
		e.end(e.Status, tx.Now())
		var detail any
		if e.Error != "" {
			detail = map[string]string{"error": e.Error}
		}
		if err := r.s.saveExec(tx, &was, e, "execution."+string(e.Status), detail); err != nil {
			return err
		}
		if e.Status == StatusSuccess {
			if err := agentResults.Put(tx, resultsOf(e.TenantID, e.AgentID).Last(e.SkillName), e.Result); err != nil {
				return err
			}
		}
		return r.s.announce(tx, k, e)
	})
	if err != nil {
		return fmt.Errorf("end %s: %w", e.Step, err)
	}
	return nil
}

// announce publishes how an execution ended: AREA.complete with its result, or
// AREA.failed with its error.
func (s *Skills) announce(tx *audit.Tx, k *Skill, e *Execution) error {
	m := bus.Send{
		Topic: k.Area() + ".complete", Sender: e.AgentID, Type: bus.Event, Payload: e.Result, Trace: e.TraceID, Task: e.TaskID,
	}
	if e.Status != StatusSuccess {
		m.Topic, m.Payload = k.Area()+".failed", core.MustEncode(map[string]string{"error": e.Error})
	}
	_, err := s.opt.Bus.AcceptIn(tx, m)
	if errors.Is(err, core.Kind(core.InvalidInput)) { // a result that is none of a message: too large, say
		m.Payload = core.MustEncode(map[string]any{"execution_id": e.ExecutionID, "result_bytes": len(e.Result)})
		_, err = s.opt.Bus.AcceptIn(tx, m)
	}
	if err != nil {
		return fmt.Errorf("announce %s: %w", m.Topic, err)
	}
	return nil
}

// PruneExecutions is Prune of executions.
func (s *Skills) PruneExecutions(ctx context.Context, by core.Caller, limit record.Limit, _ []byte) (next []byte, err error) {
	return s.execs.Prune(ctx, by, limit, "executions")
}

// ended is when an execution ended; one whose task goes on has not.
func (s *Skills) ended(tx *audit.Tx, e *Execution) (at time.Time, err error) {
	t, err := s.opt.Tasks.In(tx, e.TaskID)
	if err == nil && !t.Status.Terminal() || err != nil && core.AsError(err).Code != core.NotFound {
		return at, err
	}
	return e.CompletedAt, nil
}

// TaskLeaves implements task.Leaver: the plan of a run leaves with its task.
func (s *Skills) TaskLeaves(tx *audit.Tx, t *task.Task) error {
	return errors.Join(plans.Drop(tx, ofTask(t.TaskID)), taskAgents.Drop(tx, ofTask(t.TaskID)))
}

// Erasers erase the parameters, results and errors of runs of skills and of
// subagents, and the metadata of these.
func (s *Skills) Erasers() []record.Eraser {
	return []record.Eraser{s.execs.Eraser("executions"), s.agents.Eraser("subagents")}
}

func eraseExecution(e *record.Erasure, x *Execution) {
	whose, over := e.Whose(x.TaskID)
	if whose == record.NotTheirs && x.AgentID != e.Of.Name {
		return
	}
	if e.Wipe(&x.Parameters, &x.Result, &x.Error); !over || x.Status == StatusPending {
		e.Waits("execution " + x.ExecutionID + " (it runs, or its task does)")
	}
}

func eraseSubagent(e *record.Erasure, a *Subagent) {
	whose, over := e.Whose(a.TaskID)
	if whose == record.NotTheirs && a.CreatedBy != e.Of.Name && a.AgentID != e.Of.Name {
		return
	}
	e.Wipe(&a.SkillParams, &a.Metadata, &a.Error)
	under := resultsOf(e.Tx.Tenant(), a.AgentID)
	e.Check(agentResults.Each(e.Tx, under, func(skill record.Parts, result core.Raw) (bool, error) {
		if key := slices.Concat(under, record.Key(skill)); e.Wipe(&result) {
			e.Then(func() error { return agentResults.Put(e.Tx, key, result) })
		}
		return true, nil
	}))
	if e.Some && (!over || !a.State.Final()) {
		e.Waits("subagent " + a.AgentID + " (" + string(a.State) + ")")
	}
}
