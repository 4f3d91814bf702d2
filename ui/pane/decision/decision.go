// Package decision is the sheet of one decision of the judge.
package decision

import (
	"context"
	"errors"
	"strconv"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/decisions"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "decision"

// Pane shows a decision. Decisions never change, so one read is enough.
type Pane struct {
	*pane.Detail[whole]
}

// whole is a decision with its grounds, nil when they are not known.
type whole struct {
	judge.GateDecision
	why *judge.Grounds
}

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewDetail(pane.DetailSpec[whole]{
		Name: Name, Fetch: fetch, Text: text,
		Item: func(g *whole) pane.Item { return decisions.Item(&g.GateDecision) },
	})}
}

func fetch(w pane.World, ctx context.Context, tenant, id string) (g whole, err error) {
	if g.GateDecision, err = w.Decision(ctx, tenant, id); err != nil {
		return g, err
	}
	why, err := w.Grounds(ctx, tenant, id)
	switch {
	case err == nil:
		g.why = &why
	case !errors.Is(err, core.Kind(core.NotFound)):
		return g, err
	}
	return g, nil
}

func text(env pane.Env, g *whole, out *pane.Paras) {
	d := &g.GateDecision
	st := pane.DecisionState(d)
	out.Add("decision", st.Label(env.Glyphs), st.Role())
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
