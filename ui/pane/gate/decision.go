package gate

import (
	"context"
	"errors"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// grounded is a decision with its grounds, nil when they are not known.
type grounded struct {
	judge.GateDecision
	why *judge.Grounds
}

// NewDecision makes the sheet of one decision of the judge.
func NewDecision(of Judge) *pane.Detail[grounded] {
	return pane.NewDetail(pane.DetailSpec[grounded]{
		Name: "decision", Text: decisionText,
		Fetch: func(ctx context.Context, tenant, id string) (g grounded, err error) {
			if g.GateDecision, err = of.Decision(ctx, tenant, id); err != nil {
				return g, err
			}
			why, err := of.Grounds(ctx, tenant, id)
			switch {
			case err == nil:
				g.why = &why
			case !errors.Is(err, core.Kind(core.NotFound)):
				return g, err
			}
			return g, nil
		},
		Item:  func(g *grounded) pane.Item { return decisionItem(&g.GateDecision) },
		State: func(_ *pane.Env, g *grounded) pane.State { return pane.DecisionState(&g.GateDecision) },
	})
}

func decisionText(env pane.Env, g *grounded, out *pane.Paras) {
	d := &g.GateDecision
	out.Fields(&env, d, "reason:reason_code why:rationale")
	out.Add("confidence", pane.Confidence(d.Confidence), screen.Text)
	out.Fields(&env, d, "gate kind agent,opens")
	if g.why != nil {
		out.Head("on what grounds")
		if d.DecidedBy != "policy" && g.why.ApprovalID != "" {
			out.Add("", "a person answered; this is why they were asked", screen.Dim)
		}
		pane.Why(g.why, out)
	}
	out.Head("who and when")
	by := d.DecidedBy + " by " + string(d.Door)
	if d.SelfApproved {
		by += " (self-approved)"
	}
	out.Add("decided by", by, screen.Text)
	out.Fields(&env, d, "shown:shown_at decided:created_at abort,bad")
	out.Head("bound to")
	out.Fields(&env, d, "rule:rule_id policy:policy_version,dim digest,dim before_edit:prior_digest,dim approval:approval_id,opens")
	out.Fields(&env, d, "task:task_id,opens session:session_id,opens trace:trace_id,dim id:decision_id,dim")
}

// NewDecisions makes the pane of the judge's decisions, newest first.
func NewDecisions(of Judge) *pane.Table[judge.GateDecision] {
	return pane.NewTable(pane.Spec[judge.GateDecision]{
		Name: "decisions", Title: "decisions", Empty: "no decisions",
		Face: face.For[judge.GateDecision](),
		Cells: map[string]pane.Cell[judge.GateDecision]{
			"DECISION": pane.StateCell(pane.DecisionState),
			"REASON": func(env *pane.Env, d *judge.GateDecision) (string, screen.Role) {
				if d.Rationale == "" {
					return d.ReasonCode, screen.Text
				}
				return d.ReasonCode + ": " + d.Rationale, screen.Text
			},
		},
		Item:  decisionItem,
		Fetch: of.Decisions,
	})
}

// decisionItem is a decision as a thing under the cursor.
func decisionItem(d *judge.GateDecision) pane.Item {
	return pane.Item{
		Kind: "decision", ID: d.DecisionID, Task: d.TaskID, Agent: d.Agent, Session: d.Session,
		Trace: d.TraceID, Approval: d.ApprovalID,
	}
}
