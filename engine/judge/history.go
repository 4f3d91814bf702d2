package judge

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// History knows what past decisions at the gate task.start were about.
type History interface {
	// PastAsk is the question at a task's start; NOT_FOUND when it is gone.
	PastAsk(ctx context.Context, tenant, task string) (Ask, error)
}

// Recalls names who knows past tasks. Call it before the first Backtest.
func (j *Judge) Recalls(h History) { j.past = h }

// maxPastAsk bounds the arguments that are kept of one, in bytes.
const maxPastAsk = 16 << 10

// pastAsk is what a decision was about that nothing else keeps: a person's
// answer has its approval, and a task's start its task.
type pastAsk struct {
	Action   Action         `json:"action"`
	Agent    AgentRef       `json:"agent,omitzero"`
	Driver   string         `json:"driver,omitempty"`
	Intent   string         `json:"intent,omitempty"`
	Risk     Risk           `json:"risk,omitempty"`
	Attempt  int            `json:"attempt,omitzero"`
	Priority int            `json:"priority,omitzero"`
	By       string         `json:"by,omitempty"`
	ByKind   core.ActorKind `json:"by_kind,omitempty"`
}

func keepAsk(tx *audit.Tx, d *GateDecision, ask *Ask) error {
	if d.Decision == HITL || len(ask.Action.Args) > maxPastAsk {
		return nil
	}
	switch ask.Gate {
	case GateTool, GateSkill, GateAgent, GateIntent, GateNet:
	default:
		return nil
	}
	return pastAsks.Put(tx, keyOf(d.DecisionID), pastAsk{
		ask.Action, ask.Agent, ask.Driver, clip(ask.Intent, maxIntent), ask.Risk, ask.Attempt, ask.Priority, ask.By.Name, ask.By.Kind,
	})
}

// recall finds what a decision was about; false when nobody knows any more.
func (j *Judge) recall(ctx context.Context, tenant string, d *GateDecision) (Ask, bool, error) {
	if d.ApprovalID != "" {
		a, err := j.Approval(ctx, tenant, d.ApprovalID)
		if errors.Is(err, core.Kind(core.NotFound)) { // it left
			return Ask{}, false, nil
		}
		if err != nil {
			return Ask{}, false, err
		}
		if a.PriorDigest != "" { // edited since: these are other arguments
			return Ask{}, false, nil
		}
		if core.IsErased(a.Action.Args) {
			return Ask{}, false, nil
		}
		return a.ask(), d.Gate != GateResult, nil // an approval keeps no result's text
	}
	if d.Gate == GateStart {
		if j.past == nil || d.TaskID == "" {
			return Ask{}, false, nil
		}
		ask, err := j.past.PastAsk(ctx, tenant, d.TaskID)
		if err != nil { // the task, its content, its agent or its runner is gone
			return Ask{}, false, ctx.Err()
		}
		return ask, true, nil
	}
	var out Ask
	found := false
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		p, kept, err := pastAsks.Get(tx, keyOf(d.DecisionID))
		if err != nil || !kept {
			return err
		}
		p.Action.Args = append(core.Raw(nil), p.Action.Args...)
		if found = !core.IsErased(p.Action.Args); !found {
			return nil
		}
		out = Ask{
			Gate: d.Gate, TraceID: d.TraceID, TaskID: d.TaskID, Session: d.Session, Attempt: p.Attempt, Priority: p.Priority,
			Action: p.Action, Agent: p.Agent, Driver: p.Driver, Intent: p.Intent, Risk: p.Risk,
			By: core.Caller{Tenant: tenant, Name: p.By, Kind: p.ByKind, Door: d.Door},
		}
		return nil
	})
	if err != nil {
		return out, false, fmt.Errorf("recall what decision %s was about: %w", d.DecisionID, err)
	}
	return out, found, nil
}
