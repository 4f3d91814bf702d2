package swarm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/store"
)

// Dispatch asks for a new task (contract 1.3).
type Dispatch struct {
	Kind           string        // 1-128 characters; one with a runner
	Input          core.Raw      // JSON object, at most 1 MiB
	Priority       *int          // 0-100; nil means 50
	Timeout        time.Duration // of one attempt, 1 s to 24 h; 0 means none
	StartTimeout   time.Duration // from creation to the first claim, 1 s to 24 h; 0 means none
	MaxAttempts    *int          // 0-100; nil means 3; 0 means one attempt
	Session        string        // id or name
	Parent         string        // task id; the child keeps its trace
	Agent          string        // for kinds that go to an agent
	Trace          string        // W3C trace-id or traceparent; "" takes the parent's or a fresh one
	IdempotencyKey string        // at most 256 bytes; the same key returns the first task
	After          []string      // tasks that must succeed first, at most 64
	Intent         string        // one line for the approval card
	retryOf        string
}

const (
	defaultPriority    = 50
	defaultMaxAttempts = 3
	minTimeout         = time.Second
	maxTimeout         = 86400 * time.Second
)

// Dispatch validates, asks the judge and queues a task, all durable when it
// returns. The task may come back queued, queued with an open approval, or
// blocked by a denial.
func (s *Swarm) Dispatch(ctx context.Context, by core.Caller, d Dispatch) (Task, error) {
	t, err := s.draft(ctx, by, d)
	if err != nil {
		return Task{}, err
	}
	ask, err := s.startAsk(&t, t.Input)
	if err == nil && s.opt.Input != nil {
		ask, err = s.recorded(ctx, by, &t, ask)
	}
	if err != nil {
		return Task{}, err
	}
	if d.Agent != t.Agent && d.Agent != "" {
		return Task{}, core.Invalid("agent", d.Agent, "the agent that the input names: "+cmp.Or(t.Agent, "none"))
	}
	if t.Agent != "" && !isAgent(t.Agent) {
		return Task{}, core.Invalid("agent", t.Agent, "1-64 of a-z A-Z 0-9 _ . -")
	}
	t.Title = ask.title
	s.bind(by.Tenant, &ask.Ask)
	for {
		v := s.judge.Evaluate(ctx, by.Tenant, ask.Ask)
		if err := v.Refused(); err != nil {
			return Task{}, err
		}
		made := t
		err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			if d.IdempotencyKey != "" {
				if found, err := s.known(tx, d, &made); err != nil || found {
					return err
				}
			}
			return s.insert(tx, &made, d, ask, v)
		})
		if errors.Is(err, judge.ErrStale) {
			continue
		}
		if err != nil {
			return Task{}, fmt.Errorf("dispatch %s: %w", d.Kind, err)
		}
		return made, nil
	}
}

// recorded asks about the input that is recorded where that is another one.
func (s *Swarm) recorded(ctx context.Context, by core.Caller, t *Task, ask startAsk) (startAsk, error) {
	input, err := s.opt.Input(ctx, by, t.Kind, t.Input)
	if err != nil || bytes.Equal(input, t.Input) {
		return ask, err
	}
	t.Input = input
	return s.startAsk(t, input)
}

// draft checks every field and fills the defaults in.
func (s *Swarm) draft(ctx context.Context, by core.Caller, d Dispatch) (Task, error) {
	t := Task{
		TenantID: by.Tenant, TraceID: d.Trace, Kind: d.Kind, Status: Queued, Input: d.Input,
		Priority: defaultPriority, MaxAttempts: defaultMaxAttempts, Intent: cut(d.Intent, 500),
		Agent: d.Agent, CreatedBy: by.Name, CreatedKind: by.Kind, CreatedPerson: by.Person, RetryOf: d.retryOf,
	}
	if d.Kind == "" || len(d.Kind) > 128 {
		return t, core.Invalid("kind", d.Kind, "1-128 characters")
	}
	if d.Priority != nil {
		if t.Priority = *d.Priority; t.Priority < 0 || t.Priority > 100 {
			return t, core.Invalid("priority", t.Priority, "0-100")
		}
	}
	if d.MaxAttempts != nil {
		if t.MaxAttempts = *d.MaxAttempts; t.MaxAttempts < 0 || t.MaxAttempts > 100 {
			return t, core.Invalid("max_attempts", t.MaxAttempts, "0-100")
		}
	}
	var err error
	if t.TimeoutS, err = timeout("timeout_s", d.Timeout); err != nil {
		return t, err
	}
	if t.StartTimeoutS, err = timeout("start_timeout_s", d.StartTimeout); err != nil {
		return t, err
	}
	if len(d.IdempotencyKey) > 256 {
		return t, core.Invalid("idempotency_key", d.IdempotencyKey, "at most 256 bytes")
	}
	if err := core.CheckObject("input", d.Input, core.MaxInput); err != nil {
		return t, err
	}
	if trace, span, ok := core.ParseTraceparent(d.Trace); ok {
		t.TraceID, t.ParentSpan = trace, span
	} else if d.Trace != "" {
		if err := core.CheckTrace(d.Trace); err != nil {
			return t, err
		}
	}
	return t, s.relations(ctx, by, d, &t)
}

// timeout is a time-out in whole seconds, rounded up; 0 is none.
func timeout(field string, d time.Duration) (int, error) {
	if d != 0 && (d < minTimeout || d > maxTimeout) {
		return 0, core.Invalid(field, d.Seconds(), "1-86400")
	}
	return int((d + time.Second - 1) / time.Second), nil
}

// relations resolves the session, the parent and the dependencies.
func (s *Swarm) relations(ctx context.Context, by core.Caller, d Dispatch, t *Task) error {
	if d.Session != "" {
		id, err := s.sessionID(ctx, by, d.Session)
		if err != nil {
			return err
		}
		t.SessionID = id
	}
	if d.Parent != "" {
		parent, err := s.header(ctx, by, d.Parent)
		if err != nil {
			return fmt.Errorf("parent_task_id: %w", err)
		}
		t.ParentTaskID = parent.TaskID
		if t.TraceID == "" {
			t.TraceID = parent.TraceID
		}
	}
	if len(d.After) > 64 {
		return core.Invalid("after", len(d.After), "at most 64 tasks")
	}
	for _, id := range d.After {
		if _, err := s.local(ctx, by, core.TaskPrefix, id); err != nil {
			return fmt.Errorf("after: %w", err)
		}
		if !contains(t.After, id) {
			t.After = append(t.After, id)
		}
	}
	if t.TraceID == "" {
		t.TraceID = core.NewTrace(nil)
	}
	return nil
}

// insert writes a new task with the judge's verdict, in one transaction.
func (s *Swarm) insert(tx *audit.Tx, t *Task, d Dispatch, ask startAsk, v judge.Verdict) error {
	if t.SessionID != "" {
		ses, err := s.sessions.Need(tx, t.SessionID)
		if err != nil {
			return err
		}
		if ses.State == SessionStopped {
			return core.Errorf(core.Conflict, "session %s is stopped and takes no tasks", ses.SessionID).With("field", "session_id")
		}
	}
	seq := uint64(tx.Add(countTasks, 1))
	t.TaskID = core.NewID(core.TaskPrefix, t.TenantID, seq)
	t.CreatedAt, t.Policy = tx.Now(), v.PolicyVersion
	if err := s.linkAfter(tx, t); err != nil {
		return err
	}
	input := t.Input
	if err := tx.Put(bInput, keyIn(tx, seq), append(tx.Alloc(len(input)), input...)); err != nil {
		return err
	}
	for _, ix := range t.indexes() {
		if err := tx.Put(ix.bucket, ix.key, nil); err != nil {
			return err
		}
		if ix.count != "" {
			tx.Add(ix.count, 1)
		}
	}
	if d.IdempotencyKey != "" {
		k := idemKey(d.IdempotencyKey)
		if err := errors.Join(tx.Put(bIdem, k, append(key8(seq), t.digest(input)...)), tx.Put(bIdemOf, key8(seq), k)); err != nil {
			return err
		}
	}
	if err := s.startBy(tx, t); err != nil {
		return err
	}
	return s.pass(tx, t, "", "task.queued", ask, v)
}

// pass applies the start gate's verdict to a queued task: ready, held for a
// person, or blocked. It writes the task under the given event.
func (s *Swarm) pass(tx *audit.Tx, t *Task, from Status, event string, ask startAsk, v judge.Verdict) error {
	ask.TaskID, ask.Attempt, ask.StartBy = t.TaskID, t.Attempt, t.StartBy()
	dec, ap, err := s.judge.Commit(tx, ask.Ask, v)
	if err != nil {
		return err
	}
	t.Policy, t.Bound = v.PolicyVersion, judge.FilesDigest(ask.Action.Files)
	if ap != nil {
		t.ApprovalID = ap.ApprovalID
		setWaiting(tx, t, true)
	}
	if err := s.move(tx, t, from, event, queuedDetail(tx, t, dec)); err != nil {
		return err
	}
	if dec.Decision == judge.Deny {
		return s.end(tx, t, Result{Status: Blocked, Error: &TaskError{
			Code: "denied", Message: "denied by " + dec.Decider() + ": " + dec.Rationale,
			Details: core.MustEncode(map[string]string{"decision_id": dec.DecisionID, "reason_code": dec.ReasonCode}),
		}})
	}
	return s.enqueue(tx, t)
}

// queuedDetail is the audit detail of a task that enters the queue. Built by
// hand: there is one for every task.
func queuedDetail(tx store.Tx, t *Task, dec judge.GateDecision) core.Raw {
	o := object{append(tx.Alloc(512), '{')}
	o.text("kind", t.Kind)
	o.number("priority", int64(t.Priority))
	o.name("decision")
	o.b = dec.AppendAudit(o.b)
	o.optional("agent", t.Agent)
	return append(o.b, '}')
}

type index struct {
	bucket store.Bucket
	key    []byte
	count  string // counter of what the list holds
}

// indexes are the history lists that a task is in from birth, beside the
// main one. A plain task is in none.
func (t *Task) indexes() []index {
	seq := taskSeq(t.TaskID)
	var out []index
	if t.Agent != "" {
		out = append(out, index{bOfAgent, nameKey(t.Agent, seq), countOf(bOfAgent, t.Agent)})
	}
	if t.SessionID != "" {
		out = append(out, index{bOfSes, nameKey(t.SessionID, seq), countOf(bOfSes, t.SessionID)})
	}
	if t.ParentTaskID != "" {
		out = append(out, index{bChild, pairKey(taskSeq(t.ParentTaskID), seq), ""})
	}
	return out
}

func idemKey(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// digest tells one request from another under the same idempotency key.
func (t *Task) digest(input core.Raw) []byte {
	sum := sha256.Sum256(append([]byte(t.Kind+"\x00"+t.Agent+"\x00"+t.SessionID+"\x00"), input...))
	return sum[:]
}

// known finds the task an idempotency key made before.
func (s *Swarm) known(tx *audit.Tx, d Dispatch, t *Task) (bool, error) {
	old, err := tx.Get(bIdem, idemKey(d.IdempotencyKey))
	if err != nil || old == nil {
		return false, err
	}
	if !bytes.Equal(old[8:], t.digest(t.Input)) {
		return false, core.Errorf(core.Conflict, "idempotency_key %q was used for another request", cut(d.IdempotencyKey, 60)).With("field", "idempotency_key")
	}
	input := t.Input
	err = loadTask(tx, seqAt(old[:8]), t)
	t.Input = input
	return true, err
}
