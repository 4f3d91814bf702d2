package gate

import (
	"context"
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

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

const policiesName = "policies"

// Policies lists policies.
type Policies struct {
	*pane.Table[judge.Policy]
	judge    Judge
	reader   pane.Reader[judge.Standing]
	standing *judge.Standing
}

// NewPolicies makes the pane of a tenant's policies: the one that rules, those
// that ruled, and what is proposed, the newest first.
func NewPolicies(of Judge) *Policies {
	return &Policies{judge: of, reader: pane.NewReader[judge.Standing](policiesName), Table: pane.NewTable(pane.Spec[judge.Policy]{
		Name: policiesName, Title: "policies", Empty: "no policies",
		Face: face.For[judge.Policy](),
		Cells: map[string]pane.Cell[judge.Policy]{
			"STATUS": pane.StateCell(policyState),
			"TESTS":  tests,
			"JAIL":   jail,
			"BY":     proposer,
		},
		Item: policyItem,
		Load: func(ctx context.Context, tenant string) ([]judge.Policy, error) {
			all, err := of.Policies(ctx, tenant)
			if err != nil {
				return nil, err
			}
			embedded, err := of.GetPolicy(ctx, tenant, judge.BasePolicy)
			return append(all, embedded.Policy), err
		},
	})}
}

// policyItem is a policy as a thing under the cursor.
func policyItem(p *judge.Policy) pane.Item { return pane.Item{Kind: "policy", ID: p.PolicyID} }

// policyState is where a policy stands.
func policyState(p *judge.Policy) pane.State {
	switch p.Status {
	case judge.PolicyActive:
		return pane.State{State: screen.Succeeded, Word: "rules"}
	case judge.PolicyProposed:
		if p.FirstBy != "" {
			return pane.State{State: screen.Waiting, Word: "one of two"}
		}
		return pane.State{State: screen.Waiting, Word: "proposed"}
	case judge.PolicyWithdrawn:
		return pane.State{State: screen.Cancelled, Word: "withdrawn"}
	}
	return pane.State{State: screen.Idle, Word: "ruled"}
}

// tests is how a policy's cases went.
func tests(_ *pane.Env, p *judge.Policy) (string, screen.Role) {
	switch s := p.TestsSummary; {
	case p.PolicyID == judge.BasePolicy:
		return "", screen.Dim
	case p.Cases == 0:
		return "no cases", screen.Warn
	case s == nil:
		return fmt.Sprintf("%d not run", p.Cases), screen.Warn
	case s.Failed > 0:
		return fmt.Sprintf("%d of %d fail", s.Failed, s.Total), screen.Bad
	default:
		return fmt.Sprintf("%d of %d pass", s.Passed, s.Total), screen.Good
	}
}

// jail says whether a program is kept in a jail here.
func jail(_ *pane.Env, p *judge.Policy) (string, screen.Role) {
	switch {
	case p.Kind != judge.KindProgram:
		return "", screen.Dim
	case p.Unsandboxed:
		return "UNSANDBOXED", screen.Danger
	}
	return "jailed", screen.Good
}

// proposer is who proposed a policy; an agent is told from a person.
func proposer(_ *pane.Env, p *judge.Policy) (string, screen.Role) {
	switch {
	case p.ProposedKind == core.Agent:
		return "agent " + p.ProposedBy, screen.Warn
	case p.ProposedBy == "":
		return "", screen.Dim
	}
	return p.ProposedBy, screen.Text
}

func (p *Policies) Refresh(env pane.Env) tea.Cmd {
	tenant := env.Tenant
	return tea.Batch(p.Table.Refresh(env), p.reader.Read(tenant, func(ctx context.Context) (judge.Standing, error) {
		return p.judge.Standing(ctx, tenant)
	}))
}

func (p *Policies) Update(env pane.Env, body any) tea.Cmd {
	a, ok := p.reader.Take(env.Tenant, body)
	if !ok {
		return p.Table.Update(env, body)
	}
	if a.Err == nil {
		p.standing = &a.Got
	}
	return nil
}

func (p *Policies) Reset() {
	p.Table.Reset()
	p.standing = nil
}

// Draw implements pane.Pane: what rules and on which terms stands below.
func (p *Policies) Draw(c *screen.Canvas, env pane.Env, focused bool) {
	lines := terms(p.standing)
	if c.H() < len(lines)+3 {
		lines = nil
	}
	list, foot := c.Bounds().SplitTop(c.H() - len(lines))
	p.Table.Draw(c.Sub(list), env, focused)
	for i, l := range lines {
		c.TextIn(foot.X+1, foot.Y+i, foot.W-2, l.Role, l.Text)
	}
}

// terms says, a line each, what rules and what its change asks for.
func terms(s *judge.Standing) (lines []pane.Row) {
	if s == nil {
		return nil
	}
	text := "rules now: " + s.Name
	if s.Rules > 0 {
		text += fmt.Sprintf(", %d rules", s.Rules)
	}
	lines = append(lines, pane.Row{Text: text + ", version " + short(s.Version), Role: screen.Text})
	if s.Broken != "" {
		lines = append(lines, pane.Row{Text: s.Broken + ": a person decides everything", Role: screen.Danger})
	}
	if s.Terms.TwoPersons {
		lines = append(lines, pane.Row{Text: "two persons must activate", Role: screen.Warn})
	}
	switch {
	case s.Unjailed != "" && s.Terms.Jailed:
		lines = append(lines, pane.Row{Text: "programs can't be jailed here, and are refused: " + s.Unjailed, Role: screen.Danger})
	case s.Unjailed != "":
		lines = append(lines, pane.Row{Text: "programs run UNSANDBOXED here: " + s.Unjailed, Role: screen.Danger})
	}
	return lines
}
