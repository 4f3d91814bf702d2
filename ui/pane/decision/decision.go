// Package decision is the sheet of one decision of the judge.
package decision

import (
	"context"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "decision"

// Pane shows a decision. Decisions never change, so one read is enough.
type Pane struct {
	pane.Record
}

type got struct {
	decision judge.GateDecision
	err      error
}

// New makes the pane.
func New() *Pane { return &Pane{pane.NewRecord(Name)} }

// Show implements pane.Pane.
func (p *Pane) Show(env pane.Env, it pane.Item) tea.Cmd {
	if !p.Bind(it) {
		return nil
	}
	world, tenant := env.World, env.Tenant
	return p.Read(func(ctx context.Context) any {
		d, err := world.Decision(ctx, tenant, it.ID)
		return got{d, err}
	})
}

// Refresh implements pane.Pane.
func (p *Pane) Refresh(pane.Env) tea.Cmd { return nil }

// Update implements pane.Pane.
func (p *Pane) Update(env pane.Env, body any) tea.Cmd {
	reply, _, ok := p.Taken(body)
	if !ok {
		return nil
	}
	r := reply.(got)
	var paras pane.Paras
	if r.err != nil {
		paras.Add("", r.err.Error(), screen.Bad)
		p.Page.Set(paras)
		return nil
	}
	d := &r.decision
	st := pane.DecisionState(d)
	paras.Add("decision", st.Label(env.Glyphs), st.Role())
	paras.Add("reason", d.ReasonCode, screen.Text)
	paras.Add("why", d.Rationale, screen.Text)
	if d.Confidence != nil {
		paras.Add("confidence", pane.Confidence(*d.Confidence), screen.Text)
	}
	paras.Add("gate", string(d.Gate), screen.Text)
	paras.Add("kind", d.Kind, screen.Text)
	paras.Add("agent", d.Agent, screen.Accent)
	paras.Head("who and when")
	by := d.DecidedBy + " by " + string(d.Door)
	if d.SelfApproved {
		by += " (self-approved)"
	}
	paras.Add("decided by", by, screen.Text)
	paras.Add("shown", pane.When(env.Now, d.ShownAt), screen.Text)
	paras.Add("decided", pane.When(env.Now, d.CreatedAt), screen.Text)
	if d.Abort {
		paras.Add("abort", strconv.FormatBool(d.Abort), screen.Bad)
	}
	paras.Head("bound to")
	paras.Add("rule", d.RuleID, screen.Text)
	paras.Add("policy", d.PolicyVersion, screen.Dim)
	paras.Add("digest", d.Digest, screen.Dim)
	paras.Add("before edit", d.PriorDigest, screen.Dim)
	paras.Add("approval", d.ApprovalID, screen.Accent)
	paras.Add("task", d.TaskID, screen.Accent)
	paras.Add("session", d.Session, screen.Accent)
	paras.Add("trace", d.TraceID, screen.Dim)
	paras.Add("id", d.DecisionID, screen.Dim)
	p.Page.Set(paras)
	return nil
}
