package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
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
		e.CallID = r.alias(id, e.Tool)
	}
	r.follow(ctx, &e)
	var answer ToolAnswer
	var err error
	if refusal == nil {
		answer, err = r.decide(ctx, &e, ask)
	} else {
		r.log.add("WARN", "tool request refused: "+refusal.Error(), "tool")
		r.acts.answered(e.CallID, deny, refusal.Error())
		answer, err = ToolAnswer{CallID: id, Decision: deny, Reason: refusal.Error()}, r.log.failed()
	}
	if r.seen != nil {
		r.seen.Answered(ctx, e, answer)
	}
	if answer.Decision != approve { // its id is free again, now that all know
		r.mu.Lock()
		delete(r.calls, e.CallID)
		r.mu.Unlock()
	}
	return answer, err
}

// decide puts one tool call before the judge and blocks until there is an
// answer. A fault of ours denies.
func (r *run) decide(ctx context.Context, e *Event, ask judge.Ask) (ToolAnswer, error) {
	r.log.add("INFO", fmt.Sprintf("asks for %s %s: %s", e.Tool, e.CallID, ask.Action.Args), "tool")
	if err := r.log.flush(ctx); err != nil { // who is asked can read what led here
		return ToolAnswer{}, err
	}
	c := &toolCall{r: r, ask: &ask}
	reply, err := r.f.asked.Put(ctx, swarm.Question{
		By: r.m.speaker(), Ask: ask, Beat: r.beat, Stop: r.stop, Held: r.m.standing, Asked: c.asked, Used: c.used, Bind: e.Bind,
		Anew: func() { r.log.add("WARN", "the approval of "+e.CallID+" no longer stands: asked anew", "tool") },
	})
	r.progress.event(&Event{}, false) // the time it waited is over
	switch {
	case err != nil:
		return r.interrupted(e.CallID, err)
	case !reply.Approved:
		return r.refused(e.CallID, reply), nil
	}
	r.acts.answered(e.CallID, approve, "")
	return ToolAnswer{CallID: e.CallID, Decision: approve, Args: reply.Args, Files: reply.Files, Reason: cut(reply.Reason, maxReason)}, nil
}

// standing reports whether the agent is to stand still; moved is closed when
// that may have changed.
func (m *member) standing() (held bool, moved <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holds != 0 || m.held, m.moved
}

// toolCall is what the audit log says about a tool call that is asked about.
type toolCall struct {
	r        *run
	ask      *judge.Ask
	approval string // the last that was opened for it
}

func (c *toolCall) note(event string, with map[string]any) record.Event {
	with["task_id"], with["call_id"], with["tool"] = c.ask.TaskID, c.ask.Action.CallID, c.ask.Action.Tool
	return record.Event{Type: event, Trace: c.ask.TraceID, Detail: with}
}

func (c *toolCall) record(tx *audit.Tx, n record.Event) error {
	_, err := tx.Record(audit.Entry{Type: n.Type, Trace: n.Trace, Subject: "agent", ID: c.r.m.name, Detail: n.Detail})
	return err
}

// asked records the verdict, and for a hitl also that the agent waits.
func (c *toolCall) asked(tx *audit.Tx, d judge.GateDecision, ap *judge.Approval) error {
	n := c.note("tool.requested", map[string]any{"decision_id": d.DecisionID, "decision": d.Decision})
	if err := c.r.m.judged(tx, c.ask.TaskID, c.ask.Action, d); err != nil {
		return err
	}
	if ap == nil {
		return c.record(tx, n)
	}
	_, err := c.r.f.changeIn(tx, c.r.m, n, func(_ *audit.Tx, a *Agent) error {
		if a.TaskID != c.ask.TaskID {
			return core.Errorf(core.Conflict, "agent %s no longer works on task %s", c.r.m.name, c.ask.TaskID)
		}
		a.answered(c.approval) // it was voided, and this one is in its place
		a.asks(ap.ApprovalID)
		c.approval = ap.ApprovalID
		return nil
	})
	return err
}

func (c *toolCall) used(tx *audit.Tx, approval string, stands bool) error {
	event := "tool.started"
	if !stands {
		event = "tool.stale"
	}
	return c.record(tx, c.note(event, map[string]any{"approval_id": approval}))
}

// refused tells the agent no, and with abort ends the run.
func (r *run) refused(call string, no swarm.Reply) ToolAnswer {
	reason := cut(strings.TrimSpace(no.Reason), maxReason)
	if reason == "" {
		reason = "denied: " + no.Decision.ReasonCode
	}
	r.mu.Lock()
	if no.Decision.DecisionID != "" {
		r.denials = append(r.denials, no.Decision.DecisionID)
	}
	r.mu.Unlock()
	answer := ToolAnswer{CallID: call, Decision: deny, Reason: reason}
	if no.Abort {
		answer.Decision = abort
		r.end(aborted, reason)
	}
	r.acts.answered(call, deny, reason)
	r.log.add("WARN", "call "+call+": "+answer.Decision+": "+reason, "tool")
	return answer
}

// interrupted answers a call whose run ends: pending questions get a no, or
// agents that wait for an answer would hang. Other faults end the run.
func (r *run) interrupted(call string, err error) (ToolAnswer, error) {
	if errors.Is(err, swarm.ErrStopped) {
		return ToolAnswer{CallID: call, Decision: abort, Reason: "the task was ended"}, nil
	}
	return ToolAnswer{CallID: call, Decision: deny, Reason: "no decision could be made"}, err
}
