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
	"swarmdeck/engine/queue"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// errLate is the cause of a refused result.
var errLate = core.Errorf(core.Conflict, "the lease on this task is lost: its result is refused")

// Complete commits the outcome of an attempt, judged first (requirement 2.6). It
// is accepted once, and only under the lease of the claim: a late result is
// refused with CONFLICT and audited. A retryable failure with attempts left
// goes back to the queue, and a result that needs a person is parked: the
// returned Result then has the status of an unfinished task.
func (s *ending) Complete(ctx context.Context, by core.Caller, taskID string, id uint64, out task.Outcome) (task.Result, error) {
	return s.complete(ctx, by, taskID, id, out, func(*audit.Tx) error { return nil })
}

// CompleteAndClaim is Complete, and Claim in the same commit: a worker that
// goes on to the next task waits for the disk once, not twice. A refused
// outcome claims nothing.
func (s *Swarm) CompleteAndClaim(ctx context.Context, by core.Caller, taskID string, id uint64, out task.Outcome, worker string, n int) (task.Result, []task.Task, error) {
	if err := checkClaim(worker, n); err != nil {
		return task.Result{}, nil, err
	}
	return s.completeAndClaim(ctx, by, taskID, id, out, worker, n, s.generalLanes(by.Tenant))
}

func (s *Swarm) completeAndClaim(ctx context.Context, by core.Caller, taskID string, id uint64, out task.Outcome, worker string, n int, lanes []queue.Lane) (task.Result, []task.Task, error) {
	var next []task.Task
	res, err := s.complete(ctx, by, taskID, id, out, func(tx *audit.Tx) (err error) {
		next, err = s.claimIn(tx, worker, n, lanes)
		return err
	})
	if err != nil {
		return task.Result{}, nil, err
	}
	return res, next, nil
}

// complete commits an outcome, and then what follows it in the same commit.
func (s *ending) complete(ctx context.Context, by core.Caller, taskID string, id uint64, out task.Outcome, then func(*audit.Tx) error) (task.Result, error) {
	t, err := s.tasks.Header(ctx, by, taskID)
	if err != nil {
		return task.Result{}, err
	}
	if out, err = out.Checked(); err != nil {
		return task.Result{}, err
	}
	res := task.Result{}
	why := unmet(t.Expect, &out)
	err = judge.Decide(func() error {
		var ask judge.Ask
		var v judge.Verdict
		if why == "" {
			ask, v = s.judgeResult(ctx, &t, out)
		}
		return s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			var now task.Task
			if err := s.tasks.Load(tx, task.Seq(taskID), &now); err != nil {
				return err
			}
			if now.Status != task.Running || now.Lease != id || id == 0 { // a parked result has lease 0
				return errLate
			}
			var err error
			if res, err = s.conclude(tx, &now, out, ask, v, why); err != nil {
				return err
			}
			return then(tx)
		})
	})
	if errors.Is(err, errLate) {
		return task.Result{}, s.ledger.Refuse(ctx, by, audit.Entry{
			Type: "result.refused", Trace: t.TraceID, Subject: "task", ID: t.TaskID,
			Detail: core.MustEncode(map[string]any{"lease": id, "status": out.Status, "reason": "lease lost"}),
		}, fmt.Errorf("complete task %s: %w", taskID, errLate))
	}
	if err != nil {
		return task.Result{}, fmt.Errorf("complete task %s: %w", taskID, err)
	}
	return res, nil
}

// resultText is what is looked through for sensitive topics: what the runner says is
// the text, else the output, without the escapes that could hide a word.
func resultText(out *task.Outcome) string {
	if out.Text != "" && out.Text != string(out.Output) {
		return out.Text
	}
	if plain, err := core.Canonical(out.Output); err == nil {
		return string(plain)
	}
	return string(out.Output)
}

// judgeResult asks about a success; failures pass as they are.
func (s *shared) judgeResult(ctx context.Context, t *task.Task, out task.Outcome) (judge.Ask, judge.Verdict) {
	ask := judge.Ask{
		Gate: judge.GateResult, TraceID: t.TraceID, TaskID: t.TaskID, Session: t.SessionID, Attempt: t.Attempt,
		Priority: t.Priority, Action: judge.Action{Kind: t.Kind, Args: resultArgs(out)},
		Agent: judge.AgentRef{Name: t.Agent}, Intent: "commit the result of: " + t.Title,
		Confidence: out.Confidence, Text: resultText(&out), LastTry: t.LastTry(),
		By: t.Asker(),
	}
	if out.Status != task.Succeeded {
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
func resultArgs(out task.Outcome) core.Raw {
	if len(out.Output) <= 16<<10 {
		return out.Output
	}
	return outputDigest(out)
}

func outputDigest(out task.Outcome) core.Raw {
	sum := sha256.Sum256(out.Output)
	return core.MustEncode(map[string]any{"output_bytes": len(out.Output), "output_sha256": hex.EncodeToString(sum[:])})
}

// conclude ends an attempt. unmet is why a success is not the one that was asked for.
func (s *ending) conclude(tx *audit.Tx, t *task.Task, out task.Outcome, ask judge.Ask, v judge.Verdict, unmet string) (task.Result, error) {
	// Its work may have ended while a tool call of it waited.
	if err := s.voidGates(tx, t, "the run ended"); err != nil {
		return task.Result{}, err
	}
	t.SetWaiting(tx, false)
	if t.CancelRequested && out.Status != task.Blocked && !out.Stands { // it ended by itself just then: it must not come back
		out.Status, out.Error = task.Cancelled, &task.Error{Code: "cancelled", Message: s.whyCancelled(t)}
	}
	if out.Unsent && out.Status == task.Failed && out.Error.Retryable {
		t.Sent, t.Deaths, t.ErrorCode = false, t.Deaths+1, out.Error.Code
		return task.Result{Status: task.Queued}, s.interrupt(tx, t, out.Error.Message, resumeBackoff(t.Deaths))
	}
	var dec judge.GateDecision
	var ap *judge.Approval
	if out.Status == task.Succeeded && unmet == "" {
		var err error
		if dec, ap, err = s.judge.Commit(tx, ask, v); err == nil {
			err = s.opt.Record.Judged(tx, t, dec)
		}
		if err != nil {
			return task.Result{}, err
		}
	}
	if err := s.leave(tx, t); err != nil {
		return task.Result{}, err
	}
	if out.Status != task.Succeeded {
		if out.Status == task.Failed && out.Error.Retryable && !t.LastTry() {
			return task.Result{Status: task.Queued}, s.retryLater(tx, t, "task.retry", *out.Error)
		}
		res := task.Result{Status: out.Status, Output: out.Output, Error: out.Error, Denials: out.Denials, Confidence: out.Confidence}
		return res, s.endAs(tx, t, &res, nil)
	}
	switch {
	case unmet != "":
		return s.reject(tx, t, out, "result_unexpected", unmet)
	case ap != nil:
		t.ApprovalID, t.Lease = ap.ApprovalID, 0 // the work is over: nobody may complete it again
		t.SetWaiting(tx, true)
		if err := parked.Put(tx, record.Seq(t.Seq()), out); err != nil {
			return task.Result{}, err
		}
		return task.Result{Status: task.Running}, s.tasks.Move(tx, t, task.Running, "result.held", core.MustEncode(map[string]string{"approval_id": ap.ApprovalID}))
	case dec.Decision == judge.Deny:
		return s.reject(tx, t, out, "result_rejected", dec.Rationale)
	}
	res := task.Result{Status: task.Succeeded, Output: out.Output, Confidence: out.Confidence, Denials: out.Denials}
	return res, s.endAs(tx, t, &res, dec.AppendAudit(tx.Alloc(256)))
}

// reject turns a result away: the task is tried again with the feedback, or
// fails after its last attempt.
func (s *ending) reject(tx *audit.Tx, t *task.Task, out task.Outcome, code, feedback string) (task.Result, error) {
	e := task.Error{Code: code, Message: core.Cut("result rejected: "+feedback, 4096), Retryable: true}
	t.Feedback, t.Sent = core.Cut(feedback, 1000), false
	if !t.LastTry() {
		return task.Result{Status: task.Queued}, s.retryLater(tx, t, "result.rejected", e)
	}
	res := task.Result{Status: task.Failed, Output: out.Output, Error: &e, Confidence: out.Confidence, Denials: out.Denials}
	return res, s.endAs(tx, t, &res, nil)
}

// retryLater puts a running task back in the queue after its back-off. What an agent was told
// is asked about then.
func (s *ending) retryLater(tx *audit.Tx, t *task.Task, event string, e task.Error) error {
	if err := s.opt.Record.Concluded(tx, t, task.Result{Status: task.Queued, Error: &e}); err != nil {
		return err
	}
	wait := backoff(t)
	t.Status, t.Worker, t.Lease, t.Begun, t.Deaths = task.Queued, "", 0, false, 0
	t.Attempt++
	t.ApprovalID, t.ErrorCode = "", e.Code
	t.RunAt = tx.Now().Add(wait).Truncate(time.Microsecond)
	detail := core.MustEncode(map[string]any{"error": e.Told(), "wait_ms": wait.Milliseconds()})
	if err := s.tasks.Move(tx, t, task.Running, event, detail); err != nil {
		return err
	}
	return s.schedule(tx, t)
}

// backoff doubles from 1 s to 5 min, with up to a quarter more, by task and
// attempt, so that tasks that failed together do not come back together.
func backoff(t *task.Task) time.Duration {
	d := core.Backoff(t.Attempt, time.Second, 5*time.Minute)
	h := fnv.New32a()
	fmt.Fprint(h, t.TaskID, t.Attempt)
	return d + time.Duration(h.Sum32()%256)*d/1024
}

// endAs is end with the result handed back as stored, and with the decision
// that let it pass, as the audit log has it.
func (s *ending) endAs(tx *audit.Tx, t *task.Task, res *task.Result, decision core.Raw) error {
	if err := s.close(tx, t, *res, decision); err != nil {
		return err
	}
	if err := s.release(tx, t); err != nil {
		return err
	}
	res.TenantID, res.TraceID, res.TaskID, res.CompletedAt, res.ProducedBy = t.TenantID, t.TraceID, t.TaskID, t.CompletedAt, t.Worker
	return nil
}

// end commits a task's result and lets go what waited for it.
func (s *ending) end(tx *audit.Tx, t *task.Task, res task.Result) error {
	return s.endAs(tx, t, &res, nil)
}

func (s *ending) close(tx *audit.Tx, t *task.Task, res task.Result, decision core.Raw) error {
	from := t.Status
	if from == task.Running {
		if err := s.opt.Record.Concluded(tx, t, res); err != nil {
			return err
		}
	}
	if from == task.Queued {
		if err := s.dequeue(tx, t); err != nil {
			return err
		}
	}
	t.SetWaiting(tx, false)
	t.Status, t.CompletedAt, t.RunAt, t.Pending, t.Paused, t.Sent, t.Begun = res.Status, tx.Now(), time.Time{}, 0, false, false, false
	res.TenantID, res.TraceID, res.TaskID = t.TenantID, t.TraceID, t.TaskID
	res.CompletedAt, res.ProducedBy = t.CompletedAt, t.Worker
	if len(res.Output) == 0 {
		res.Output = core.Raw(`{}`)
	}
	t.Denials = len(res.Denials)
	var detail core.Raw
	if res.Error != nil {
		t.ErrorCode = res.Error.Code
		detail = core.MustEncode(map[string]any{"error": res.Error.Told()})
	} else {
		t.ErrorCode = ""
		if decision != nil {
			o := core.BeginObject(tx.Alloc(len(decision) + 16))
			o.Raw("decision", decision)
			detail = o.End()
		}
	}
	if err := s.tasks.PutResult(tx, &res); err != nil {
		return err
	}
	event := "task.succeeded" // the usual one, a constant
	if res.Status != task.Succeeded {
		event = "task." + string(res.Status)
	}
	return s.tasks.Move(tx, t, from, event, detail)
}
