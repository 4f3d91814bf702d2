package fleet

import (
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

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
		Agent:  judge.AgentRef{Name: a.Name, Role: a.Role, Project: a.Project, Profile: a.Profile},
		Driver: a.Runtime, Intent: intent, Risk: risk, By: r.m.speaker(),
	}, nil
}

// alias is what a call that is refused unseen goes by until it is answered: an
// id that no open call has.
func (r *run) alias(id, tool string) string {
	if id = cut(id, maxCall); id == "" || !printable(id) {
		id = "call"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := 2; ; n++ {
		a := fmt.Sprintf("%s#%d", id, n)
		if _, open := r.calls[a]; !open {
			r.calls[a] = tool
			return a
		}
	}
}

// maxCalls bounds the open calls of one run.
const maxCalls = 10_000
