package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
)

// The words of a ToolAnswer.
const (
	approve = "approve"
	deny    = "deny"
	abort   = "abort"
)

// tool follows one tool call until it is answered. One that is refused unseen
// goes under a name of its own: its id may be another call's.
func (r *run) tool(ctx context.Context, e Event) (ToolAnswer, error) {
	ask, refusal := r.question(&e)
	id := e.CallID
	if refusal != nil {
		e.CallID = r.acts.alias(id)
	}
	r.follow(ctx, &e)
	var answer ToolAnswer
	var err error
	judged := true // else it was cut off, and the end of the run says by what
	if refusal == nil {
		answer, err = r.decide(ctx, &e, ask)
		judged = err == nil
		if errors.Is(err, judge.ErrStopped) { // agents that wait for an answer would hang
			answer, err = ToolAnswer{CallID: e.CallID, Decision: abort, Reason: "the task was ended"}, nil
		}
	} else {
		r.log.add("WARN", "tool request refused: "+refusal.Error(), "tool")
		r.acts.answered(e.CallID, deny, refusal.Error())
		answer, err = ToolAnswer{CallID: id, Decision: deny, Reason: refusal.Error()}, r.log.failed()
	}
	if r.seen != nil && judged {
		r.seen.Answered(ctx, e, answer)
	}
	if answer.Decision != approve { // its id is free again, now that all know
		r.acts.close(e.CallID)
	}
	return answer, err
}

// decide puts one tool call before the judge and blocks until there is an
// answer. A fault of ours denies. judge.ErrStopped is that the run is to end.
func (r *run) decide(ctx context.Context, e *Event, ask judge.Ask) (ToolAnswer, error) {
	r.log.add("INFO", fmt.Sprintf("asks for %s %s: %s", e.Tool, e.CallID, ask.Action.Args), "tool")
	if err := r.log.failed(); err != nil {
		return ToolAnswer{}, err
	}
	c := &toolCall{r: r, ask: &ask}
	reply, err := r.f.opt.Judge.Request(ctx, judge.Request{
		By: r.m.speaker(), Ask: ask, Beat: r.beat, Stop: r.stop, Held: r.m.standing, Commit: r.commit, Record: c.record, Bind: e.Bind,
		Opened: func(approval string) { r.recall(ctx, e.CallID, approval) },
	})
	r.progress.event(&Event{}, false) // the time it waited is over
	switch {
	case err != nil: // it ends the run, or the run is being ended
		return ToolAnswer{CallID: e.CallID, Decision: deny, Reason: "no decision could be made"}, err
	case !reply.Approved:
		return r.refused(e.CallID, reply), nil
	}
	r.acts.answered(e.CallID, approve, "")
	return ToolAnswer{CallID: e.CallID, Decision: approve, Args: reply.Args, Files: reply.Files, Content: reply.Content, Reason: core.ClipTo(reply.Reason, maxReason)}, nil
}

// standing reports whether the agent is to stand still; moved is closed when
// that may have changed.
func (m *member) standing() (held bool, moved <-chan struct{}) {
	moved = m.Look(func() { held = m.holds != 0 || m.held })
	return held, moved
}

// toolCall is what the audit log says about a tool call that is asked about.
type toolCall struct {
	r        *run
	ask      *judge.Ask
	approval string // the last that was opened for it
}

// record records a step, and where a person is asked also that the agent waits.
func (c *toolCall) record(tx *audit.Tx, s judge.Step) error {
	detail := s.Detail()
	detail["task_id"], detail["call_id"], detail["tool"] = c.ask.TaskID, c.ask.Action.CallID, c.ask.Action.Tool
	n := record.Event{Type: "tool." + s.Name, Trace: c.ask.TraceID, Detail: detail}
	if s.Name == judge.Requested {
		if err := c.r.m.judged(tx, c.ask.TaskID, c.ask.Action, s.Decision); err != nil {
			return err
		}
	}
	if s.Name == judge.Stale {
		tx.OnCommit(func() {
			c.r.log.add("WARN", "the approval of "+c.ask.Action.CallID+" no longer stands: asked anew", "tool")
		})
	}
	if s.Name != judge.Requested || s.Approval == "" {
		return c.r.m.record(tx, n)
	}
	_, err := c.r.f.changeIn(tx, c.r.m, n, func(_ *audit.Tx, a *Agent) error {
		if a.TaskID != c.ask.TaskID {
			return core.Errorf(core.Conflict, "agent %s no longer works on task %s", c.r.m.name, c.ask.TaskID)
		}
		a.answered(c.approval) // it was voided, and this one is in its place
		a.asks(s.Approval)
		c.approval = s.Approval
		return nil
	})
	return err
}

// refused tells the agent no, and with abort ends the run.
func (r *run) refused(call string, no judge.Outcome) ToolAnswer {
	reason := cmp.Or(core.ClipTo(strings.TrimSpace(no.Reason), maxReason), "denied: "+no.Decision.ReasonCode)
	answer := ToolAnswer{CallID: call, Decision: deny, Reason: reason}
	if no.Abort {
		answer.Decision = abort
	}
	r.denied(no, reason)
	r.acts.answered(call, deny, reason)
	r.log.add("WARN", "call "+call+": "+answer.Decision+": "+reason, "tool")
	return answer
}

// question checks what the agent asks for; a request that is not exactly
// understood is never passed on.
func (r *run) question(e *Event) (judge.Ask, error) {
	if e.CallID == "" || len(e.CallID) > maxCall || !core.Printable(e.CallID) {
		id := e.CallID
		e.CallID = core.ClipTo(id, maxCall)
		return judge.Ask{}, core.Invalid("call_id", id, fmt.Sprintf("1-%d printable bytes", maxCall))
	}
	if e.Tool == "" || len(e.Tool) > maxCall || !core.Printable(e.Tool) {
		return judge.Ask{}, core.Invalid("tool", e.Tool, fmt.Sprintf("1-%d printable bytes", maxCall))
	}
	if a := r.m.rec.Load(); (e.Asks == nil || e.Asks.Call != nil) && !a.mayAsk(e.Tool) {
		return judge.Ask{}, core.Invalid("tool", e.Tool, "what role "+a.Role+" has: "+core.ClipTo(strings.Join(a.Tools, ", "), 200))
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
	gate, kind, args := judge.GateTool, judge.KindTool, e.Args
	if e.Asks != nil {
		q := *e.Asks
		q.Agent = r.m.name
		var err error
		if args, err = q.Args(); err != nil {
			return judge.Ask{}, err
		}
		gate, kind = judge.GateQuestion, judge.KindQuestion
	}
	risk := judge.Risk(e.Risk)
	if !slices.Contains([]judge.Risk{"", judge.Low, judge.Medium, judge.High, judge.Critical}, risk) {
		risk = judge.High // an unknown word is no reason to trust
	}
	if err := r.acts.reserve(e.CallID); err != nil {
		return judge.Ask{}, err
	}
	t, a := &r.job.Task, r.m.rec.Load()
	return judge.Ask{
		Gate: gate, TraceID: t.TraceID, TaskID: t.TaskID, Session: t.SessionID, Attempt: t.Attempt, Priority: t.Priority,
		Action: judge.Action{Kind: kind, Server: a.Runtime, Tool: e.Tool, CallID: e.CallID, Args: args},
		Agent:  judge.AgentRef{Name: a.Name, Role: a.Role, Project: a.Project, Profile: a.Profile}, Contained: r.contained(a, e),
		Driver: a.Runtime, Intent: cmp.Or(oneLine(e.Intent, maxIntent), a.Name+" calls "+e.Tool), Said: e.Intent != "" && !e.Ours, Fixed: e.Fixed, Risk: risk, By: r.m.speaker(),
	}, nil
}

// contained says whether nothing but what is the agent's own can feel a call.
func (r *run) contained(a *Agent, e *Event) judge.Containment {
	switch c := e.Cell; {
	case c == nil && a.Runtime == "coder":
		return judge.Contained("it runs in a Coder workspace, which nothing here holds")
	case c == nil || r.f.opt.Beyond == nil:
		return judge.Contained("nothing here holds what it does")
	case c.Loose != "":
		return judge.Contained(c.Loose)
	default:
		tree, why := r.f.opt.Beyond(a.TenantID, a.Name, c.Dir)
		if path := judge.Outside(e.Args, c.Dir, tree, c.Home, "/tmp"); why == "" && path != "" {
			why = "it names " + core.ClipTo(path, maxCall) + ", which is not its own"
		}
		return judge.Contained(why)
	}
}

// maxCalls bounds the calls of one run that are remembered.
const maxCalls = 10_000

// Settle implements judge.Settler: the agent no longer waits.
func (f *Fleet) Settle(tx *audit.Tx, ap judge.Approval, out judge.Outcome) error {
	m := f.member(tx.Tenant(), ap.Agent.Name)
	if m == nil {
		return nil
	}
	if err := m.judged(tx, ap.TaskID, ap.Action, out.Decision); err != nil {
		return err
	}
	n := record.Event{Type: "agent.answered", Trace: ap.TraceID, Detail: map[string]any{
		"approval_id": ap.ApprovalID, "approved": out.Approved, "abort": out.Abort,
	}}
	_, err := f.changeIn(tx, m, n, func(_ *audit.Tx, a *Agent) error {
		if !a.answered(ap.ApprovalID) {
			return errSame
		}
		if a.Waiting == "" || a.TaskID == "" {
			return nil
		}
		return f.opt.Swarm.Gate(tx, a.TaskID, a.Waiting)
	})
	return err
}
