package engine

import (
	"context"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/story"
)

// MaxReplayed is how many recorded calls one replay asks a policy about.
const MaxReplayed = 10_000

// Replay is what a policy would answer to recorded calls.
type Replay struct {
	Subject  string         `json:"subject"`
	PolicyID string         `json:"policy_id,omitempty"` // "" of a file
	Version  string         `json:"policy_version"`
	Calls    int            `json:"calls"`
	More     bool           `json:"more,omitzero"` // calls after the first 10,000
	Unjudged int            `json:"unjudged"`      // of which the record has no decision
	Changed  int            `json:"changed"`
	Items    []ReplayedCall `json:"items"` // those whose answer would be another, or all
}

// ReplayedCall is one of them.
type ReplayedCall struct {
	EventID string   `json:"event_id"`
	CallID  string   `json:"call_id"`
	AgentID string   `json:"agent_id"`
	Server  string   `json:"server"`
	Tool    string   `json:"tool"`
	Args    core.Raw `json:"args"`
	Was     string   `json:"was"` // approve, deny, hitl, abort; none where the record has no decision
	By      string   `json:"by,omitempty"`
	Would   string   `json:"would"`
	Reason  string   `json:"reason_code"`
	RuleID  string   `json:"rule_id,omitempty"`
	// Exact says that the question is as it was; else it was made of the record,
	// which has no claimed risk and no intent.
	Exact bool `json:"exact"`
}

// Replay asks a policy about the recorded calls of run:ID, task:ID, agent:NAME,
// session:ID or an agent's newest run. Nothing is carried out, and nobody is told.
// With all it lists also calls whose answer stays.
func (e *Engine) Replay(ctx context.Context, by core.Caller, subject string, of *judge.Trial, all bool) (Replay, error) {
	out := Replay{Subject: subject, PolicyID: of.PolicyID, Version: of.Version, Items: []ReplayedCall{}}
	calls, more, err := e.DAG.JudgedCalls(ctx, by.Tenant, subject, MaxReplayed)
	if err != nil {
		return out, err
	}
	out.More = more
	for i := range calls {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		c := &calls[i]
		ask, exact, err := e.askedAgain(ctx, by.Tenant, of, c)
		if err != nil {
			return out, fmt.Errorf("call %s: %w", c.Call.CallID, err)
		}
		would, v := of.Answer(ctx, &ask)
		r := ReplayedCall{
			EventID: c.Event.EventID, CallID: c.Call.CallID, AgentID: c.Event.AgentID, Server: c.Call.Server, Tool: c.Call.Tool, Args: c.Call.Args,
			Was: was(&c.Decided), By: c.Decided.DecidedBy, Would: would, Reason: v.ReasonCode, RuleID: v.RuleID, Exact: exact,
		}
		if c.Decided.Decision == "" {
			out.Unjudged++
		}
		out.Calls++
		if r.Was != r.Would {
			out.Changed++
		}
		if all || r.Was != r.Would {
			out.Items = append(out.Items, r)
		}
	}
	return out, nil
}

// was is the word of a recorded decision, as a trial's answer has it.
func was(d *dag.Decided) string {
	switch {
	case d.Decision == "":
		return "none"
	case d.Abort:
		return "abort"
	}
	return d.Decision
}

// askedAgain is the question about a call: as it was, where that is known.
func (e *Engine) askedAgain(ctx context.Context, tenant string, of *judge.Trial, c *dag.JudgedCall) (ask judge.Ask, exact bool, err error) {
	if c.Decided.DecisionID != "" {
		if ask, exact, err = of.Recall(ctx, c.Decided.DecisionID); exact || err != nil {
			return ask, exact, err
		}
	}
	h := &c.Event.Head
	ask = judge.Ask{
		Gate: judge.GateTool, TraceID: h.TraceID, TaskID: h.TaskID, Session: h.SessionID, Driver: c.Call.Server,
		Action: judge.Action{Kind: judge.KindTool, Server: c.Call.Server, Tool: c.Call.Tool, CallID: c.Call.CallID, Args: c.Call.Args},
		Agent:  judge.AgentRef{Name: h.AgentID}, Intent: h.AgentID + " calls " + c.Call.Tool,
		By: core.Caller{Tenant: tenant, Name: h.AgentID, Kind: core.Agent, Door: core.DoorEngine},
	}
	if a, err := e.Fleet.Agent(ctx, tenant, h.AgentID); err == nil { // else it is gone, or was never here
		ask.Agent.Role, ask.Agent.Project, ask.Agent.Profile = a.Role, a.Project, a.Profile
	}
	return ask, false, nil
}

// Compare is dag.Compare with what the tasks of either side were billed.
func (e *Engine) Compare(ctx context.Context, tenant, a, b string) (dag.Comparison, error) {
	c, err := e.DAG.Compare(ctx, tenant, a, b)
	for _, side := range []*dag.Side{&c.A, &c.B} {
		var spent dag.SideSpent
		for _, id := range side.Tasks {
			u, bad := e.Swarm.Budgets.Usage(ctx, tenant, "task:"+id)
			if bad != nil {
				return c, bad
			}
			spent.Tokens += u.Tokens
			spent.CostUSD += u.CostUSD
		}
		if spent != (dag.SideSpent{}) {
			side.Spent = &spent
		}
	}
	return c, err
}

// Story is what happened since a time, the oldest first; more says that older things
// of it are left out.
func (e *Engine) Story(ctx context.Context, tenant string, q story.Query) (lines []story.Line, more bool, err error) {
	t := story.Teller{DAG: e.DAG, Tasks: e.Tasks, Swarm: e.Swarm, Fleet: e.Fleet, Judge: e.Judge, Audit: e.Audit, Trees: e.Trees}
	return t.Tell(ctx, tenant, q)
}
