package swarm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// errLate is the cause of a refused result.
var errLate = core.Errorf(core.Conflict, "the lease on this task is lost: its result is refused")

// Complete commits the outcome of an attempt, judged first (contract 2.6). It
// is accepted once, and only under the lease of the claim: a late result is
// refused with CONFLICT and audited. A retryable failure with attempts left
// goes back to the queue, and a result that needs a person is parked: the
// returned Result then has the status of an unfinished task.
func (s *Swarm) Complete(ctx context.Context, by core.Caller, taskID string, id uint64, out Outcome) (Result, error) {
	return s.complete(ctx, by, taskID, id, out, func(*audit.Tx) error { return nil })
}

// CompleteAndClaim is Complete, and Claim in the same commit: a worker that
// goes on to the next task waits for the disk once, not twice. A refused
// outcome claims nothing.
func (s *Swarm) CompleteAndClaim(ctx context.Context, by core.Caller, taskID string, id uint64, out Outcome, worker string, n int) (Result, []Task, error) {
	if err := checkClaim(worker, n); err != nil {
		return Result{}, nil, err
	}
	return s.completeAndClaim(ctx, by, taskID, id, out, worker, n, s.generalLanes(by.Tenant))
}

func (s *Swarm) completeAndClaim(ctx context.Context, by core.Caller, taskID string, id uint64, out Outcome, worker string, n int, lanes []lane) (Result, []Task, error) {
	var next []Task
	res, err := s.complete(ctx, by, taskID, id, out, func(tx *audit.Tx) (err error) {
		next, err = s.claimIn(tx, worker, n, lanes)
		return err
	})
	if err != nil {
		return Result{}, nil, err
	}
	return res, next, nil
}

// complete commits an outcome, and then what follows it in the same commit.
func (s *Swarm) complete(ctx context.Context, by core.Caller, taskID string, id uint64, out Outcome, then func(*audit.Tx) error) (Result, error) {
	t, err := s.header(ctx, by, taskID)
	if err != nil {
		return Result{}, err
	}
	if out, err = out.checked(); err != nil {
		return Result{}, err
	}
	res := Result{}
	for {
		ask, v := s.judgeResult(ctx, &t, out)
		err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			var now Task
			if err := s.heads.load(tx, taskSeq(taskID), &now); err != nil {
				return err
			}
			if now.Status != Running || now.Lease != id || id == 0 { // a parked result has lease 0
				return errLate
			}
			var err error
			if res, err = s.conclude(tx, &now, out, ask, v); err != nil {
				return err
			}
			return then(tx)
		})
		if !errors.Is(err, judge.ErrStale) {
			break
		}
	}
	if errors.Is(err, errLate) {
		return Result{}, s.ledger.Refuse(ctx, by, audit.Entry{
			Type: "result.refused", Trace: t.TraceID, Subject: "task", ID: t.TaskID,
			Detail: core.MustEncode(map[string]any{"lease": id, "status": out.Status, "reason": "lease lost"}),
		}, fmt.Errorf("complete task %s: %w", taskID, errLate))
	}
	if err != nil {
		return Result{}, fmt.Errorf("complete task %s: %w", taskID, err)
	}
	return res, nil
}

// checked bounds what a worker reports and refuses what the seed forbids.
func (o Outcome) checked() (Outcome, error) {
	if !o.Status.known() || !o.Status.Terminal() {
		return o, core.Invalid("status", string(o.Status), "succeeded, failed, cancelled, blocked or timed_out")
	}
	if o.Status == Succeeded && o.Error != nil {
		return o, core.Errorf(core.InvalidInput, "error: a succeeded result has none").With("field", "error")
	}
	if o.Status != Succeeded {
		if o.Error == nil {
			return o, core.Errorf(core.InvalidInput, "error: a %s result needs one", o.Status).With("field", "error")
		}
		var err error
		if o.Error, err = o.Error.checked(); err != nil {
			return o, err
		}
	}
	o.Text = cut(o.Text, maxOutput)
	if len(o.Denials) > maxDenials {
		return o, core.Invalid("denials", len(o.Denials), fmt.Sprint("at most ", maxDenials))
	}
	for _, id := range o.Denials {
		if prefix, _, _, ok := core.ParseID(id); !ok || prefix != core.DecisionPrefix {
			return o, core.Invalid("denials", id, "ids of decisions")
		}
	}
	if o.Confidence != nil && !(*o.Confidence >= 0 && *o.Confidence <= 1) {
		return o, core.Invalid("confidence", *o.Confidence, "0-1")
	}
	if len(o.Output) == 0 {
		o.Output = core.Raw(`{}`)
	}
	return o, core.CheckObject("output", o.Output, maxOutput)
}

// maxOutput bounds a result's output: 1 MiB of text, escaped at worst.
const maxOutput = 8 << 20

// maxDenials bounds how many decisions that denied a result names.
const maxDenials = 1000

// judgeResult asks about a success; failures pass as they are.
func (s *Swarm) judgeResult(ctx context.Context, t *Task, out Outcome) (judge.Ask, judge.Verdict) {
	ask := judge.Ask{
		Gate: judge.GateResult, TraceID: t.TraceID, TaskID: t.TaskID, Session: t.SessionID, Attempt: t.Attempt,
		Priority: t.Priority, Action: judge.Action{Kind: t.Kind, Args: resultArgs(out)},
		Agent: judge.AgentRef{Name: t.Agent}, Intent: "commit the result of: " + t.Title,
		Confidence: out.Confidence, Text: out.Text, LastTry: t.lastTry(),
		By: core.Caller{Tenant: t.TenantID, Name: t.CreatedBy, Kind: t.CreatedKind, Person: t.CreatedPerson},
	}
	if out.Status != Succeeded {
		return ask, judge.Verdict{}
	}
	v := s.judge.Evaluate(ctx, t.TenantID, ask)
	if v.Decision == judge.Deny && v.RuleID == "" { // no rule: the output has no canonical form
		ask.Action.Args = outputDigest(out)
		v = s.judge.Evaluate(ctx, t.TenantID, ask)
	}
	return ask, v
}

// resultArgs are what an approval of a result is bound to. A large output is
// bound by its digest, so that a card stays a card.
func resultArgs(out Outcome) core.Raw {
	if len(out.Output) <= 16<<10 {
		return out.Output
	}
	return outputDigest(out)
}

func outputDigest(out Outcome) core.Raw {
	sum := sha256.Sum256(out.Output)
	return core.MustEncode(map[string]any{"output_bytes": len(out.Output), "output_sha256": hex.EncodeToString(sum[:])})
}

func (s *Swarm) conclude(tx *audit.Tx, t *Task, out Outcome, ask judge.Ask, v judge.Verdict) (Result, error) {
	// Its work may have ended while a tool call of it waited.
	if err := s.voidGates(tx, t, "the run ended"); err != nil {
		return Result{}, err
	}
	setWaiting(tx, t, false)
	if t.CancelRequested && out.Status != Blocked { // it ended by itself just then: it must not come back
		out.Status, out.Error = Cancelled, &TaskError{Code: "cancelled", Message: s.whyCancelled(t)}
	}
	var dec judge.GateDecision
	var ap *judge.Approval
	if out.Status == Succeeded {
		var err error
		if dec, ap, err = s.judge.Commit(tx, ask, v); err != nil {
			return Result{}, err
		}
	}
	if err := s.leave(tx, t); err != nil {
		return Result{}, err
	}
	if out.Status != Succeeded {
		if out.Status == Failed && out.Error.Retryable && !t.lastTry() {
			return Result{Status: Queued}, s.retryLater(tx, t, "task.retry", *out.Error)
		}
		res := Result{Status: out.Status, Output: out.Output, Error: out.Error, Denials: out.Denials, Confidence: out.Confidence}
		return res, s.endAs(tx, t, &res)
	}
	switch {
	case ap != nil:
		t.ApprovalID, t.Lease = ap.ApprovalID, 0 // the work is over: nobody may complete it again
		setWaiting(tx, t, true)
		if err := tx.Put(bParked, key8(taskSeq(t.TaskID)), core.MustEncode(out)); err != nil {
			return Result{}, err
		}
		return Result{Status: Running}, s.move(tx, t, Running, "result.held", core.MustEncode(map[string]string{"approval_id": ap.ApprovalID}))
	case dec.Decision == judge.Deny:
		return s.reject(tx, t, out, "result_rejected", dec.Rationale)
	}
	res := Result{Status: Succeeded, Output: out.Output, Confidence: out.Confidence, Denials: out.Denials, decision: dec.AppendAudit(tx.Alloc(256))}
	return res, s.endAs(tx, t, &res)
}

// reject turns a result away: the task is tried again with the feedback, or
// fails after its last attempt.
func (s *Swarm) reject(tx *audit.Tx, t *Task, out Outcome, code, feedback string) (Result, error) {
	e := TaskError{Code: code, Message: cut("result rejected: "+feedback, 4096), Retryable: true}
	t.Feedback = cut(feedback, 1000)
	if !t.lastTry() {
		return Result{Status: Queued}, s.retryLater(tx, t, "result.rejected", e)
	}
	res := Result{Status: Failed, Output: out.Output, Error: &e, Confidence: out.Confidence, Denials: out.Denials}
	return res, s.endAs(tx, t, &res)
}

// retryLater puts a running task back in the queue after its back-off.
func (s *Swarm) retryLater(tx *audit.Tx, t *Task, event string, e TaskError) error {
	wait := backoff(t)
	t.Status, t.Worker, t.Lease = Queued, "", 0
	t.Attempt++
	t.ApprovalID, t.ErrorCode = "", e.Code
	t.RunAt = tx.Now().Add(wait).Truncate(time.Microsecond)
	detail := core.MustEncode(map[string]any{"error": e, "wait_ms": wait.Milliseconds()})
	if err := s.move(tx, t, Running, event, detail); err != nil {
		return err
	}
	return s.schedule(tx, t)
}

// backoff doubles from 1 s to 5 min, with up to a quarter more, by task and
// attempt, so that tasks that failed together do not come back together.
func backoff(t *Task) time.Duration {
	const first, most = time.Second, 5 * time.Minute
	d := most
	if t.Attempt < 9 {
		d = min(first<<t.Attempt, most)
	}
	h := fnv.New32a()
	fmt.Fprint(h, t.TaskID, t.Attempt)
	return d + time.Duration(h.Sum32()%256)*d/1024
}

// endAs is end with the result handed back as stored.
func (s *Swarm) endAs(tx *audit.Tx, t *Task, res *Result) error {
	if err := s.end(tx, t, *res); err != nil {
		return err
	}
	res.TenantID, res.TraceID, res.TaskID, res.CompletedAt, res.ProducedBy = t.TenantID, t.TraceID, t.TaskID, t.CompletedAt, t.Worker
	res.decision = nil // it ends with the transaction
	return nil
}

// end commits a task's result and lets go what waited for it.
func (s *Swarm) end(tx *audit.Tx, t *Task, res Result) error {
	if err := s.close(tx, t, res); err != nil {
		return err
	}
	return s.release(tx, t)
}

func (s *Swarm) close(tx *audit.Tx, t *Task, res Result) error {
	from := t.Status
	if from == Queued {
		if err := s.dequeue(tx, t); err != nil {
			return err
		}
	}
	setWaiting(tx, t, false)
	t.Status, t.CompletedAt, t.RunAt, t.Pending, t.Paused = res.Status, tx.Now(), time.Time{}, 0, false
	res.TenantID, res.TraceID, res.TaskID = t.TenantID, t.TraceID, t.TaskID
	res.CompletedAt, res.ProducedBy = t.CompletedAt, t.Worker
	if len(res.Output) == 0 {
		res.Output = core.Raw(`{}`)
	}
	t.Denials = len(res.Denials)
	var detail core.Raw
	if res.Error != nil {
		t.ErrorCode = res.Error.Code
		detail = core.MustEncode(map[string]any{"error": res.Error})
	} else {
		t.ErrorCode = ""
		if res.decision != nil {
			detail = append(append(append(tx.Alloc(len(res.decision)+16), `{"decision":`...), res.decision...), '}')
		}
	}
	if err := tx.Put(bResult, keyIn(tx, taskSeq(t.TaskID)), res.appendJSON(tx.Alloc(len(res.Output)+512))); err != nil {
		return err
	}
	event := "task.succeeded" // the usual one, a constant
	if res.Status != Succeeded {
		event = "task." + string(res.Status)
	}
	return s.move(tx, t, from, event, detail)
}
