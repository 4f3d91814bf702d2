package gate

import (
	"context"
	"errors"
	"strconv"

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
	out.Add("reason", d.ReasonCode, screen.Text)
	out.Add("why", d.Rationale, screen.Text)
	if d.Confidence != nil {
		out.Add("confidence", pane.Confidence(*d.Confidence), screen.Text)
	}
	out.Add("gate", string(d.Gate), screen.Text)
	out.Add("kind", d.Kind, screen.Text)
	out.Add("agent", d.Agent, screen.Accent)
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
	out.Add("shown", pane.When(env.Now, d.ShownAt), screen.Text)
	out.Add("decided", pane.When(env.Now, d.CreatedAt), screen.Text)
	if d.Abort {
		out.Add("abort", strconv.FormatBool(d.Abort), screen.Bad)
	}
	out.Head("bound to")
	out.Add("rule", d.RuleID, screen.Text)
	out.Add("policy", d.PolicyVersion, screen.Dim)
	out.Add("digest", d.Digest, screen.Dim)
	out.Add("before edit", d.PriorDigest, screen.Dim)
	out.Link("approval", d.ApprovalID, screen.Accent, pane.Item{Kind: "approval", ID: d.ApprovalID})
	out.Link("task", d.TaskID, screen.Accent, pane.Item{Kind: "task", ID: d.TaskID})
	out.Link("session", d.Session, screen.Accent, pane.Item{Kind: "session", ID: d.Session})
	out.Add("trace", d.TraceID, screen.Dim)
	out.Add("id", d.DecisionID, screen.Dim)
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
		ID:    func(d *judge.GateDecision) string { return d.DecisionID },
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
