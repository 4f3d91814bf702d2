package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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

// question checks what the agent asks for; a request that is not exactly
// understood is never passed on.
func (r *run) question(e *Event) (judge.Ask, error) {
	if e.CallID == "" || len(e.CallID) > maxCall || !printable(e.CallID) {
		id := e.CallID
		e.CallID = cut(id, maxCall)
		return judge.Ask{}, core.Invalid("call_id", id, fmt.Sprintf("1-%d printable bytes", maxCall))
	}
	if e.Tool == "" || len(e.Tool) > maxCall || !printable(e.Tool) {
		return judge.Ask{}, core.Invalid("tool", e.Tool, fmt.Sprintf("1-%d printable bytes", maxCall))
	}
	if len(e.Args) == 0 {
		e.Args = core.Raw("{}")
	}
	if err := core.CheckObject("args", e.Args, core.MaxInput); err != nil {
		return judge.Ask{}, err
	}
	if _, err := core.Canonical(e.Args); err != nil {
		return judge.Ask{}, fmt.Errorf("args: %w", err)
	}
	risk := judge.Risk(e.Risk)
	switch risk {
	case "", judge.Low, judge.Medium, judge.High, judge.Critical:
	default:
		risk = judge.High // an unknown word is no reason to trust
	}
	r.mu.Lock()
	_, twice := r.calls[e.CallID]
	full := len(r.calls) >= maxCalls
	if !twice && !full {
		r.calls[e.CallID] = e.Tool
	}
	r.mu.Unlock()
	if twice {
		return judge.Ask{}, core.Invalid("call_id", e.CallID, "an id that this run has not used for another open call")
	}
	if full {
		return judge.Ask{}, core.Errorf(core.InvalidInput, "%d tool calls have no result yet", maxCalls)
	}
	t, a := &r.job.Task, r.m.rec.Load()
	intent := oneLine(e.Intent, maxIntent)
	if intent == "" {
		intent = a.Name + " calls " + e.Tool
	}
	return judge.Ask{
		Gate: judge.GateTool, TraceID: t.TraceID, TaskID: t.TaskID, Session: t.SessionID, Attempt: t.Attempt, Priority: t.Priority,
		Action: judge.Action{Kind: "tool", Server: a.Runtime, Tool: e.Tool, CallID: e.CallID, Args: e.Args},
		Agent:  judge.AgentRef{Name: a.Name, Role: a.Role, Project: a.Project},
		Driver: a.Runtime, Intent: intent, Risk: risk, By: r.m.speaker(),
	}, nil
}

// maxCalls bounds the open calls of one run.
const maxCalls = 10_000

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
		if h, now := r.m.now(); h != nil && now == r {
			h.Interrupt()
		}
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

// Validate implements judge.Settler: edited arguments must be a JSON object.
func (f *Fleet) Validate(_ judge.Approval, args core.Raw) (core.Raw, error) {
	return args, core.CheckObject("args", args, core.MaxInput)
}

// Settle implements judge.Settler: the agent no longer waits, and its run is
// woken after the commit. An approval whose run is gone can't be approved.
func (f *Fleet) Settle(tx *audit.Tx, ap judge.Approval, out judge.Outcome) error {
	tenant := tx.Tenant()
	if out.Approved && !f.asked.has(tenant, ap.ApprovalID) {
		return core.Errorf(core.Conflict, "approval %s: the run that asked has ended, nobody would act on it", ap.ApprovalID).With("field", "approval")
	}
	tx.OnCommit(func() { f.asked.tell(tenant, ap.ApprovalID, out) })
	m := f.member(tenant, ap.Agent.Name)
	if m == nil {
		return nil
	}
	n := note{event: "agent.answered", trace: ap.TraceID, detail: map[string]any{
		"approval_id": ap.ApprovalID, "approved": out.Approved, "abort": out.Abort,
	}}
	_, err := f.changeIn(tx, m, n, func(_ *audit.Tx, a *Agent) error {
		if a.Waiting != ap.ApprovalID {
			return errSame
		}
		a.Waiting = ""
		return f.opt.Swarm.Gate(tx, ap.TaskID, "")
	})
	return err
}

// waiters are the tool calls that wait for a person, by tenant and approval.
type waiters struct {
	mu   sync.Mutex
	open map[string]chan judge.Outcome
}

type waiter struct {
	all      *waiters
	key      string
	approval string
	ch       chan judge.Outcome // one slot, told at most once
}

func (w *waiters) prepare(tenant, approval string) *waiter {
	return &waiter{all: w, key: tenant + "/" + approval, approval: approval, ch: make(chan judge.Outcome, 1)}
}

func (w *waiter) register() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.all.open[w.key] = w.ch
}

func (w *waiters) drop(x *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, x.key)
}

func (w *waiters) has(tenant, approval string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[tenant+"/"+approval] != nil
}

func (w *waiters) tell(tenant, approval string, out judge.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := tenant + "/" + approval
	if ch := w.open[key]; ch != nil {
		ch <- out
		delete(w.open, key)
	}
}
