package gate

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

const policyName = "policy"

// computing bounds how long cases and a backtest may take.
const computing = time.Minute

// Policy shows one policy.
type Policy struct {
	*pane.Detail[wholePolicy]
	judge Judge
	cases trial[[]judge.CaseResult]
	back  trial[tried]
}

// wholePolicy is a policy with what rules beside it.
type wholePolicy struct {
	judge.PolicyDetail
	now judge.Standing
}

// trial is something that is computed when it is asked for.
type trial[T any] struct {
	pane.Reader[T]
	got *T
	err error
}

func newTrial[T any]() trial[T] {
	t := trial[T]{Reader: pane.NewReader[T](policyName)}
	t.Most = computing
	return t
}

// tried is a backtest with the tasks of its examples.
type tried struct {
	judge.BacktestReport
	examples map[string]judge.GateDecision
}

// NewPolicy makes the sheet of one policy: where it stands, how its cases go,
// which past decisions it would change, and its source.
func NewPolicy(of Judge) *Policy {
	p := &Policy{judge: of, cases: newTrial[[]judge.CaseResult](), back: newTrial[tried]()}
	p.Detail = pane.NewDetail(pane.DetailSpec[wholePolicy]{
		Name: policyName, Fetch: p.fetch, Text: p.text, Live: true,
		Item:  func(g *wholePolicy) pane.Item { return policyItem(&g.Policy) },
		Title: func(g *wholePolicy) string { return "policy " + g.Name },
		State: func(_ *pane.Env, g *wholePolicy) pane.State { return policyState(&g.Policy) },
	})
	return p
}

func (p *Policy) fetch(ctx context.Context, tenant, id string) (g wholePolicy, err error) {
	if g.now, err = p.judge.Standing(ctx, tenant); err == nil {
		g.PolicyDetail, err = p.judge.GetPolicy(ctx, tenant, id)
	}
	return g, err
}

func (p *Policy) Show(env pane.Env, it pane.Item) tea.Cmd {
	if it.ID != p.Item().ID {
		p.cases, p.back = newTrial[[]judge.CaseResult](), newTrial[tried]()
	}
	return p.Detail.Show(env, it)
}

// Do implements pane.Pane: "cases" and "backtest" compute and show.
func (p *Policy) Do(env pane.Env, action string) (tea.Cmd, bool) {
	id, by := p.Item().ID, env.Caller
	switch action {
	case "cases", "backtest":
		if env.ReadOnly { // it would run what somebody proposed
			return pane.Say("read-only: "+action+" would run the policy", true), true
		}
		if id == judge.BasePolicy {
			return pane.Say("the embedded policy has no cases of its own, and is what others are held against", true), true
		}
	default:
		return p.Detail.Do(env, action)
	}
	var cmd tea.Cmd
	if action == "cases" {
		cmd = p.cases.Read(id, func(ctx context.Context) ([]judge.CaseResult, error) {
			all, _, err := p.judge.TryCases(ctx, by, id)
			return all, err
		})
	} else {
		cmd = p.back.Read(id, func(ctx context.Context) (tried, error) { return p.backtest(ctx, by, id) })
	}
	return tea.Batch(cmd, p.Refresh(env)), true
}

// take stores what was computed for a policy, and reports whether it was that.
func (t *trial[T]) take(id string, body any) bool {
	a, ok := t.Take(id, body)
	if !ok {
		return false
	}
	if t.err, t.got = a.Err, nil; a.Err == nil {
		t.got = &a.Got
	}
	return true
}

// heads writes a heading over what is computed or failed; false where there is a result,
// or nobody has asked.
func (t *trial[T]) heads(id, head, doing string, out *pane.Paras) bool {
	switch {
	case t.Busy(id):
		out.Head(head)
		out.Add("", doing, screen.Busy)
	case t.err != nil:
		out.Head(head)
		out.Add("", t.err.Error(), screen.Bad)
	default:
		return false
	}
	return true
}

// backtest holds a policy against what was decided, and finds out which tasks
// the examples were about.
func (p *Policy) backtest(ctx context.Context, by core.Caller, id string) (tried, error) {
	rep, err := p.judge.TryBacktest(ctx, by, id, judge.DefaultHistory)
	t := tried{rep, map[string]judge.GateDecision{}}
	for _, g := range rep.Groups {
		for _, d := range g.Examples {
			if err != nil || len(t.examples) >= mostExamples {
				return t, err
			}
			t.examples[d], err = p.judge.Decision(ctx, by.Tenant, d)
		}
	}
	return t, err
}

// mostExamples is of how many decisions the task is looked up.
const mostExamples = 60

func (p *Policy) Update(env pane.Env, body any) tea.Cmd {
	if id := p.Item().ID; p.cases.take(id, body) || p.back.take(id, body) {
		return p.Refresh(env)
	}
	return p.Detail.Update(env, body)
}

func (p *Policy) text(env pane.Env, g *wholePolicy, out *pane.Paras) {
	d := &g.Policy
	out.Exact("name", d.Name, screen.Title)
	if d.PolicyID == judge.BasePolicy {
		out.Add("", "It comes with the program. Its deny rules stand above any other policy's, and can't be lowered.", screen.Text)
		for _, l := range terms(&g.now) {
			out.Add("", l.Text, l.Role)
		}
	}
	kind := string(d.Kind)
	if d.Serve {
		kind += " that stays"
	}
	out.Add("kind", kind, screen.Text)
	if jail, role := jail(&env, d); jail != "" {
		if d.Unsandboxed && g.now.Unjailed != "" {
			jail += ": " + g.now.Unjailed
		}
		out.Add("jail", jail, role)
	}
	out.Fields(&env, d, "run_by:interpreter,argv decides_at:gates")
	if by, role := proposer(&env, d); by != "" {
		if by += ", " + pane.When(env.Now, d.CreatedAt); role == screen.Warn {
			by += "; an agent proposes, and never activates"
		}
		out.Add("proposed by", by, role)
	}
	if d.FirstBy != "" {
		out.Add("first of two", d.FirstBy+"; another person must activate it too", screen.Warn)
	}
	if d.ActivatedBy != "" {
		out.Add("activated", "by "+d.ActivatedBy+" "+pane.When(env.Now, d.ActivatedAt), screen.Text)
	}
	out.Fields(&env, d, "ruled_until:retired_at withdrawn_by")
	tests, role := tests(&env, d)
	if !d.TestedAt.IsZero() {
		tests += ", " + pane.When(env.Now, d.TestedAt)
	}
	out.Add("tests", tests, role)
	if d.Status == judge.PolicyProposed && g.now.Terms.TwoPersons {
		out.Add("", "two persons must activate it", screen.Warn)
	}
	if d.Unsandboxed && g.now.Terms.Jailed {
		out.Add("", "it can't be activated here: this tenant wants programs jailed", screen.Danger)
	}
	p.showBack(&env, out)
	p.showCases(out)
	out.Head("source")
	out.Whole(g.Source)
	if g.CaseSet != "" {
		out.Head(fmt.Sprintf("case set (%d)", d.Cases))
		out.Whole(g.CaseSet)
	}
	out.Head("bound to")
	out.Fields(&env, d, "version:policy_version,dim source:source_digest,dim resource:uri,dim id:policy_id,dim")
}

// showBack writes out which past decisions would flip.
func (p *Policy) showBack(env *pane.Env, out *pane.Paras) {
	b := p.back.got
	if p.back.heads(p.Item().ID, "backtest", "deciding the past anew"+env.Glyphs.Ellipsis, out) || b == nil {
		return
	}
	out.Head(fmt.Sprintf("backtest: %d of %d would be decided otherwise", b.Flips, b.Checked))
	looked := fmt.Sprintf("the last %d decisions by policy, %d of them made anew", b.Last, b.Checked)
	if b.Unknown > 0 {
		looked += fmt.Sprintf(", %d about what is not kept", b.Unknown)
	}
	if b.Sampled {
		looked += "; a sample, as each starts the program anew"
	}
	out.Add("looked at", looked, screen.Dim)
	for i := range b.Groups {
		p.showFlip(env, &b.Groups[i], out)
	}
}

// showFlip writes out a group of decisions that would flip alike.
func (p *Policy) showFlip(env *pane.Env, f *judge.Flip, out *pane.Paras) {
	role := screen.Warn
	switch f.To {
	case string(judge.Approve):
		role = screen.Danger // looser than it was
	case string(judge.HITL):
	default:
		role = screen.Bad
	}
	flips := verdict(f.From) + " " + string(env.Glyphs.Separator) + " " + verdict(f.To)
	out.Add(fmt.Sprintf("%d times", f.Count), fmt.Sprintf("%s  %s at %s, by %s (%s)", flips, f.Tool, f.Gate, cmp.Or(f.RuleID, "no rule"), f.Reason), role)
	for _, id := range f.Examples {
		d, ok := p.back.got.examples[id]
		line := id
		if ok {
			line = pane.Clock(env.Now, d.CreatedAt) + " " + cmp.Or(d.TaskID, id)
			if d.Agent != "" {
				line += " of " + d.Agent
			}
		}
		out.Link("", line, screen.Accent, pane.Item{Kind: "decision", ID: id, Task: d.TaskID, Agent: d.Agent})
	}
}

// verdict is a decision in an operator's word.
func verdict(word string) string {
	if word == string(judge.HITL) {
		return "ask"
	}
	return word
}

// showCases writes out how each case goes, those that fail first.
func (p *Policy) showCases(out *pane.Paras) {
	if p.cases.heads(p.Item().ID, "cases", "running them", out) || p.cases.got == nil {
		return
	}
	var failed, passed []judge.CaseResult
	for _, c := range *p.cases.got {
		if c.Passed {
			passed = append(passed, c)
		} else {
			failed = append(failed, c)
		}
	}
	out.Head(fmt.Sprintf("cases: %d of %d fail", len(failed), len(failed)+len(passed)))
	for _, c := range append(failed, passed...) {
		showCase(&c, out)
	}
}

func showCase(c *judge.CaseResult, out *pane.Paras) {
	said := verdict(c.Decision) + " " + c.ReasonCode
	if c.RuleID != "" {
		said += " by " + c.RuleID
	}
	if c.Passed {
		out.Exact("pass", c.Name+": "+said, screen.Good)
		return
	}
	out.Exact("FAIL", c.Name+": want "+strings.TrimSpace(verdict(c.Want.Decision)+" "+c.Want.ReasonCode)+", got "+said, screen.Bad)
	for _, more := range []string{c.Rationale, c.Stderr} {
		if more != "" {
			out.Exact("", more, screen.Dim)
		}
	}
}
