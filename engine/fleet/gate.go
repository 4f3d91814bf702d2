package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// The words of a ToolAnswer.
const (
	approve = "approve"
	deny    = "deny"
	abort   = "abort"
)

// tool puts one tool call before the judge and blocks until there is an
// answer. Approve is said only after the decision is on disk, and after an
// approval was checked again and marked used. A fault of ours denies.
func (r *run) tool(ctx context.Context, e Event) (ToolAnswer, error) {
	ask, err := r.question(&e)
	if err != nil {
		r.log.add("WARN", "tool request refused: "+err.Error(), "tool")
		return ToolAnswer{CallID: e.CallID, Decision: deny, Reason: err.Error()}, r.log.failed()
	}
	r.log.add("INFO", fmt.Sprintf("asks for %s %s: %s", e.Tool, e.CallID, ask.Action.Args), "tool")
	if err := r.log.flush(ctx); err != nil { // who is asked can read what led here
		return ToolAnswer{}, err
	}
	for {
		if err := r.unheld(ctx); err != nil {
			return r.interrupted(e.CallID, err)
		}
		dec, answer, err := r.judge(ctx, ask)
		if err != nil {
			return r.interrupted(e.CallID, err)
		}
		switch {
		case answer != nil:
		case dec.Decision == judge.Approve:
			return ToolAnswer{CallID: e.CallID, Decision: approve, Args: ask.Action.Args}, nil
		default:
			return r.refused(e.CallID, dec, dec.Abort, dec.Rationale), nil
		}
		out, err := r.wait(ctx, answer)
		r.f.asked.drop(answer)
		if errors.Is(err, errVoid) {
			continue
		}
		if err != nil {
			return r.interrupted(e.CallID, err)
		}
		if !out.Approved {
			return r.refused(e.CallID, out.Decision, out.Abort, out.Reason), nil
		}
		if len(out.Args) > 0 {
			ask.Action.Args = out.Args
		}
		if err := r.unheld(ctx); err != nil {
			return r.interrupted(e.CallID, err)
		}
		stands, err := r.redeem(ctx, answer.approval, ask)
		if err != nil {
			return r.interrupted(e.CallID, err)
		}
		if stands {
			return ToolAnswer{CallID: e.CallID, Decision: approve, Args: ask.Action.Args, Reason: cut(out.Reason, maxReason)}, nil
		}
		r.log.add("WARN", "the approval of "+e.CallID+" no longer stands: asked anew", "tool")
	}
}

// judge records the verdict together with the event, and for a hitl also that
// the agent waits. The waiter is registered by the commit itself, so that no
// answer can come before it.
func (r *run) judge(ctx context.Context, ask judge.Ask) (judge.GateDecision, *waiter, error) {
	f := r.f
	for tries := 0; ; tries++ {
		v := f.opt.Judge.Evaluate(ctx, r.m.tenant, ask)
		var dec judge.GateDecision
		var answer *waiter
		err := f.opt.Ledger.Update(ctx, r.m.speaker(), func(tx *audit.Tx) error {
			d, ap, err := f.opt.Judge.Commit(tx, ask, v)
			if err != nil {
				return err
			}
			dec = d
			n := note{event: "tool.requested", trace: ask.TraceID, detail: map[string]any{
				"task_id": ask.TaskID, "call_id": ask.Action.CallID, "tool": ask.Action.Tool,
				"decision_id": d.DecisionID, "decision": d.Decision,
			}}
			if ap == nil {
				_, err := tx.Record(audit.Entry{Type: n.event, Trace: n.trace, Subject: "agent", ID: r.m.name, Detail: n.detail})
				return err
			}
			answer = f.asked.prepare(r.m.tenant, ap.ApprovalID)
			tx.OnCommit(answer.register)
			_, err = f.changeIn(tx, r.m, n, func(_ *audit.Tx, a *Agent) error {
				if a.TaskID != ask.TaskID {
					return core.Errorf(core.Conflict, "agent %s no longer works on task %s", r.m.name, ask.TaskID)
				}
				a.Waiting = ap.ApprovalID
				return f.opt.Swarm.Gate(tx, ask.TaskID, ap.ApprovalID)
			})
			return err
		})
		if errors.Is(err, judge.ErrStale) && tries < maxStale {
			continue
		}
		return dec, answer, err
	}
}

// maxStale bounds how often a question is put again because the rules changed
// just then.
const maxStale = 20

// wait holds the call until its approval has ended. The lease is kept: the
// agent is alive, it is we who are slow.
func (r *run) wait(ctx context.Context, w *waiter) (judge.Outcome, error) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for n := 1; ; {
		select {
		case out := <-w.ch:
			return out, nil
		case <-tick.C:
			r.job.Beat()
			// Nobody is told when a question is voided for another reason
			// than the end of this run: the agent asks anew then.
			if n++; n%voidLook == 0 {
				ap, err := r.f.opt.Judge.Approval(ctx, r.m.tenant, w.approval)
				if err != nil {
					return judge.Outcome{}, fmt.Errorf("look at approval %s: %w", w.approval, err)
				}
				if ap.Status == judge.Voided {
					return judge.Outcome{}, errVoid
				}
			}
		case <-r.stop:
			return judge.Outcome{}, errStopped
		case <-ctx.Done():
			return judge.Outcome{}, ctx.Err()
		}
	}
}

// unheld waits while the agent is to stand still, so that nothing begins
// under a pause or an emergency stop.
func (r *run) unheld(ctx context.Context) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		r.m.mu.Lock()
		held, moved := r.m.holds != 0 || r.m.held, r.m.moved
		r.m.mu.Unlock()
		select { // an ended run gets no approval, held or not
		case <-r.stop:
			return errStopped
		default:
		}
		if !held {
			return ctx.Err()
		}
		select {
		case <-moved:
		case <-tick.C:
			r.job.Beat()
		case <-r.stop:
			return errStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var (
	errStopped = errors.New("the run is being ended")
	errVoid    = errors.New("the approval was voided")
)

// voidLook is how many beats apart a waiting call looks at its approval.
const voidLook = 8

// redeem marks the approval as used, right before its effect may start. False
// means that it does not stand for exactly this call any more.
func (r *run) redeem(ctx context.Context, approval string, ask judge.Ask) (stands bool, err error) {
	err = r.f.opt.Ledger.Update(ctx, r.m.speaker(), func(tx *audit.Tx) error {
		if stands, err = r.f.opt.Judge.Start(tx, approval, ask); err != nil {
			return err
		}
		event := "tool.started"
		if !stands {
			event = "tool.stale"
		}
		_, err = tx.Record(audit.Entry{
			Type: event, Trace: ask.TraceID, Subject: "agent", ID: r.m.name,
			Detail: map[string]any{"task_id": ask.TaskID, "call_id": ask.Action.CallID, "tool": ask.Action.Tool, "approval_id": approval},
		})
		return err
	})
	return stands, err
}

// refused tells the agent no, and with abort ends the run.
func (r *run) refused(call string, dec judge.GateDecision, end bool, reason string) ToolAnswer {
	reason = cut(strings.TrimSpace(reason), maxReason)
	if reason == "" {
		reason = "denied: " + dec.ReasonCode
	}
	r.mu.Lock()
	if dec.DecisionID != "" {
		r.denials = append(r.denials, dec.DecisionID)
	}
	delete(r.calls, call)
	r.mu.Unlock()
	answer := ToolAnswer{CallID: call, Decision: deny, Reason: reason}
	if end {
		answer.Decision = abort
		r.end(aborted, reason)
	}
	r.log.add("WARN", "call "+call+": "+answer.Decision+": "+reason, "tool")
	return answer
}

// interrupted answers a call whose run ends: pending questions get a no, or
// agents that wait for an answer would hang. Other faults end the run.
func (r *run) interrupted(call string, err error) (ToolAnswer, error) {
	if errors.Is(err, errStopped) {
		return ToolAnswer{CallID: call, Decision: abort, Reason: "the task was ended"}, nil
	}
	return ToolAnswer{CallID: call, Decision: deny, Reason: "no decision could be made"}, err
}
