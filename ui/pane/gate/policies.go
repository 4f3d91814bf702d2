package gate

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

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
