package swarm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/session"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// Dispatch asks for a new task (requirement 1.3).
type Dispatch struct {
	Kind           string        `allow:"1-128 bytes"` // one with a runner
	Input          core.Raw      // JSON object, at most 1 MiB
	Priority       *int          `allow:"0-100"`                                 // nil means 50
	Timeout        time.Duration `json:"timeout_s" allow:"none or 1s-24h"`       // of one attempt
	StartTimeout   time.Duration `json:"start_timeout_s" allow:"none or 1s-24h"` // from creation to the first claim
	MaxAttempts    *int          `allow:"0-100"`                                 // nil means 3; 0 means one attempt
	Session        string        // id or name
	Parent         string        // task id; the child keeps its trace
	Agent          string        // for kinds that go to an agent
	Trace          string        // W3C trace-id or traceparent; "" takes the parent's or a fresh one
	IdempotencyKey string        `allow:"at most 256 bytes"` // the same key returns the first task
	After          []string      `allow:"at most 64 tasks"`  // that must succeed first
	Intent         string        // one line for the approval card
	Expect         *task.Expect  // what the output must be; nil takes any
	// Also is done in the transaction that makes the task; its error makes none.
	Also    func(tx *audit.Tx, t *task.Task) error
	retryOf string
}

const (
	defaultPriority    = 50
	defaultMaxAttempts = 3
)

var bounded = bound.For[Dispatch]()

// Dispatch validates, asks the judge and queues a task, all durable when it
// returns. The task may come back queued, queued with an open approval, or
// blocked by a denial.
func (s *Swarm) Dispatch(ctx context.Context, by core.Caller, d Dispatch) (task.Task, error) {
	t, err := s.draft(ctx, by, d)
	if err != nil {
		return task.Task{}, err
	}
	ask, err := s.startAsk(&t, t.Input)
	if err == nil && s.opt.Input != nil {
		ask, err = s.recorded(ctx, by, &t, ask)
	}
	if err != nil {
		return task.Task{}, err
	}
	if d.Agent != t.Agent && d.Agent != "" {
		return task.Task{}, core.Invalid("agent", d.Agent, "the agent that the input names: "+cmp.Or(t.Agent, "none"))
	}
	if t.Agent != "" && !core.IsAgent(t.Agent) {
		return task.Task{}, core.Invalid("agent", t.Agent, "1-64 of a-z A-Z 0-9 _ . -")
	}
	t.Title = ask.title
	s.bind(by.Tenant, &ask.Ask)
	var made task.Task
	var refused error
	err = judge.Decide(func() error {
		v := s.judge.Evaluate(ctx, by.Tenant, ask.Ask)
		if refused = v.Refused(); refused != nil {
			return nil
		}
		made = t
		return s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			if d.IdempotencyKey != "" {
				if found, err := s.known(tx, d, &made); err != nil || found {
					return err
				}
			}
			if err := s.insert(tx, &made, d, ask, v); err != nil || d.Also == nil {
				return err
			}
			return d.Also(tx, &made)
		})
	})
	if refused != nil {
		return task.Task{}, refused
	}
	if err != nil {
		return task.Task{}, fmt.Errorf("dispatch %s: %w", d.Kind, err)
	}
	return made, nil
}

// recorded asks about the input that is recorded where that is another one.
func (s *shared) recorded(ctx context.Context, by core.Caller, t *task.Task, ask startAsk) (startAsk, error) {
	input, err := s.opt.Input(ctx, by, t.Kind, t.Input)
	if err != nil || bytes.Equal(input, t.Input) {
		return ask, err
	}
	t.Input = input
	return s.startAsk(t, input)
}

// draft checks every field and fills the defaults in.
func (s *Swarm) draft(ctx context.Context, by core.Caller, d Dispatch) (task.Task, error) {
	t := task.Task{
		TenantID: by.Tenant, TraceID: d.Trace, Kind: d.Kind, Status: task.Queued, Input: d.Input,
		Priority: defaultPriority, MaxAttempts: defaultMaxAttempts, Intent: core.Cut(d.Intent, 500),
		Agent: d.Agent, CreatedBy: by.Name, CreatedKind: by.Kind, CreatedPerson: by.Person, CreatedDoor: modelsDoor(by), CreatedFar: by.Far, RetryOf: d.retryOf, Expect: d.Expect,
		TimeoutS: whole(d.Timeout), StartTimeoutS: whole(d.StartTimeout),
	}
	if err := checkExpect(d.Expect); err != nil {
		return t, err
	}
	if err := bounded(&d); err != nil {
		return t, err
	}
	if d.Priority != nil {
		t.Priority = *d.Priority
	}
	if d.MaxAttempts != nil {
		t.MaxAttempts = *d.MaxAttempts
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

// whole is a time in seconds, rounded up.
func whole(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// relations resolves the session, the parent and the dependencies.
func (s *Swarm) relations(ctx context.Context, by core.Caller, d Dispatch, t *task.Task) error {
	if d.Session != "" {
		id, err := s.Sessions.ID(ctx, by, d.Session)
		if err != nil {
			return err
		}
		t.SessionID = id
	}
	if d.Parent != "" {
		parent, err := s.tasks.Header(ctx, by, d.Parent)
		if err != nil {
			return fmt.Errorf("parent_task_id: %w", err)
		}
		t.ParentTaskID = parent.TaskID
		switch {
		case t.TraceID == parent.TraceID || d.retryOf != "":
		case t.TraceID == "" || t.ParentSpan != "": // none, or that of the caller's surroundings
			t.TraceID, t.ParentSpan = parent.TraceID, ""
		default:
			return core.Invalid("trace_id", t.TraceID, "that of the parent, "+parent.TraceID)
		}
	}
	for _, id := range d.After {
		if _, err := s.ledger.LocalSeq(ctx, by, core.TaskPrefix, id); err != nil {
			return fmt.Errorf("after: %w", err)
		}
		if !slices.Contains(t.After, id) {
			t.After = append(t.After, id)
		}
	}
	if t.TraceID == "" {
		t.TraceID = core.NewTrace(nil)
	}
	return nil
}

// insert writes a new task with the judge's verdict, in one transaction.
func (s *Swarm) insert(tx *audit.Tx, t *task.Task, d Dispatch, ask startAsk, v judge.Verdict) error {
	if t.SessionID != "" {
		ses, err := s.Sessions.In(tx, t.SessionID)
		if err != nil {
			return err
		}
		if ses.State == session.Stopped {
			return core.Errorf(core.Conflict, "session %s is stopped and takes no tasks", ses.SessionID).With("field", "session_id")
		}
	}
	t.Policy = v.PolicyVersion
	if err := s.tasks.Add(tx, t); err != nil {
		return err
	}
	if err := s.linkAfter(tx, t); err != nil {
		return err
	}
	if d.IdempotencyKey != "" {
		if err := remember(tx, d.IdempotencyKey, t); err != nil {
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
func (s *Swarm) pass(tx *audit.Tx, t *task.Task, from task.Status, event string, ask startAsk, v judge.Verdict) error {
	ask.TaskID, ask.Attempt, ask.StartBy = t.TaskID, t.Attempt, t.StartBy()
	dec, ap, err := s.judge.Commit(tx, ask.Ask, v)
	if err != nil {
		return err
	}
	t.Policy, t.Bound, t.DecisionID = v.PolicyVersion, judge.FilesDigest(ask.Action.Files), dec.DecisionID
	if ap != nil {
		t.ApprovalID, t.DecisionID = ap.ApprovalID, ""
		t.SetWaiting(tx, true)
	}
	if err := s.tasks.Move(tx, t, from, event, queuedDetail(tx, t, dec)); err != nil {
		return err
	}
	if dec.Decision == judge.Deny {
		return s.end(tx, t, task.Result{Status: task.Blocked, Error: &task.Error{
			Code: "denied", Message: "denied by " + dec.Decider() + ": " + dec.Rationale,
			Details: core.MustEncode(map[string]string{"decision_id": dec.DecisionID, "reason_code": dec.ReasonCode}),
		}})
	}
	return s.enqueue(tx, t)
}

// queuedDetail is the audit detail of a task that enters the queue. Built by
// hand: there is one for every task.
func queuedDetail(tx store.Tx, t *task.Task, dec judge.GateDecision) core.Raw {
	o := core.BeginObject(tx.Alloc(512))
	o.Text("kind", t.Kind)
	o.Number("priority", int64(t.Priority))
	o.Raw("decision", dec.AppendAudit(tx.Alloc(256)))
	o.Optional("agent", t.Agent)
	return o.End()
}

// modelsDoor is the door of a caller if a model may be behind it.
func modelsDoor(by core.Caller) core.Door {
	if by.Door == core.DoorMCP {
		return core.DoorMCP
	}
	return ""
}

// request is what an idempotency key stands for.
type request struct {
	Task   uint64 `json:"task"` // its number
	Digest []byte `json:"digest"`
}

// digest tells one request from another under the same idempotency key.
func digest(t *task.Task) []byte {
	sum := sha256.Sum256(append([]byte(t.Kind+"\x00"+t.Agent+"\x00"+t.SessionID+"\x00"), t.Input...))
	return sum[:]
}

// known finds the task an idempotency key made before.
func (s *shared) known(tx *audit.Tx, d Dispatch, t *task.Task) (bool, error) {
	old, there, err := requests.Get(tx, record.Hash(d.IdempotencyKey))
	if err != nil || !there {
		return false, err
	}
	if !bytes.Equal(old.Digest, digest(t)) {
		return false, core.Errorf(core.Conflict, "idempotency_key %q was used for another request", core.Cut(d.IdempotencyKey, 60)).With("field", "idempotency_key")
	}
	input := t.Input
	err = s.tasks.Load(tx, old.Task, t)
	t.Input = input
	return true, err
}

// remember keeps which task an idempotency key made.
func remember(tx *audit.Tx, key string, t *task.Task) error {
	at := record.Hash(key)
	return errors.Join(requests.Put(tx, at, request{t.Seq(), digest(t)}), requestsOf.Put(tx, record.Seq(t.Seq()), at))
}

// TaskLeaves implements task.Leaver: the key that made a task leaves with it.
func (s *shared) TaskLeaves(tx *audit.Tx, t *task.Task) error {
	key := record.Seq(t.Seq())
	at, there, err := requestsOf.Get(tx, key)
	if err != nil || !there {
		return err
	}
	return errors.Join(requests.Delete(tx, at), requestsOf.Delete(tx, key))
}
