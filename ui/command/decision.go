package command

import (
	"github.com/spf13/cobra"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

func (t *tree) decisions() *cobra.Command {
	return t.group("decision", "What the judge and people decided",
		lists(t, spec{use: "list", short: "List the gate decisions, newest first", effect: Reads},
			words(judge.Approve, judge.Deny, judge.HITL), decisionColumns,
			func(c *call, f core.Filter) (core.Page[judge.GateDecision], error) {
				return c.eng.Judge.Decisions(c.ctx, c.by.Tenant, f)
			}),
		t.command(spec{
			use: "show ID", short: "Show a gate decision", effect: Reads, args: []string{"decision"},
			run: shows(func(c *call, id string) (judge.GateDecision, error) {
				return c.eng.Judge.Decision(c.ctx, c.by.Tenant, id)
			}),
		}),
		t.grounds("why ID", "Say on what grounds a policy decided: which rule, of which version, and what it read", "decision"),
	)
}

// grounds makes a command that says why a policy decided as it did.
func (t *tree) grounds(use, short, of string) *cobra.Command {
	return t.command(spec{
		use: use, short: short, effect: Reads, args: []string{of},
		run: shows(func(c *call, id string) (judge.Grounds, error) { return c.eng.Judge.Grounds(c.ctx, c.by.Tenant, id) }),
	})
}

func decisionColumns(c *call) []column[judge.GateDecision] {
	type D = judge.GateDecision
	return []column[D]{
		{title: "ID", text: func(d D) string { return d.DecisionID }},
		{title: "DECISION", text: func(d D) string { return d.Word() }},
		{title: "GATE", text: func(d D) string { return string(d.Gate) }},
		{title: "REASON", most: 32, text: func(d D) string { return d.ReasonCode }},
		{title: "CONF", right: true, text: func(d D) string { return confidence(d.Confidence) }},
		{title: "BY", most: 16, text: func(d D) string { return d.DecidedBy }},
		{title: "AGENT", text: func(d D) string { return d.Agent }},
		{title: "AGE", right: true, text: func(d D) string { return c.age(d.CreatedAt) }},
		{title: "TASK", text: func(d D) string { return d.TaskID }},
		{title: "KIND", wide: true, text: func(d D) string { return d.Kind }},
		{title: "RULE", wide: true, text: func(d D) string { return d.RuleID }},
		{title: "APPROVAL", wide: true, text: func(d D) string { return d.ApprovalID }},
		{title: "DOOR", wide: true, text: func(d D) string { return string(d.Door) }},
		{title: "POLICY", wide: true, text: func(d D) string { return d.PolicyVersion }},
		{title: "DIGEST", wide: true, text: func(d D) string { return d.Digest }},
		{title: "TRACE", wide: true, text: func(d D) string { return d.TraceID }},
		{title: "CREATED", wide: true, text: func(d D) string { return stamp(d.CreatedAt) }},
	}
}
