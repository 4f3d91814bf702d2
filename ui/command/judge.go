package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/judge"
)

func (t *tree) decisions() *cobra.Command {
	var l filter
	states := words(judge.Approve, judge.Deny, judge.HITL)
	return t.group("decision", "What the judge and people decided",
		t.command(spec{
			use: "list", short: "List the gate decisions, newest first", effect: Reads,
			flags: func(f *pflag.FlagSet) { l.bind(f, states...) },
			run: func(c *call, _ []string) error {
				f, err := l.read(c, states...)
				if err != nil {
					return err
				}
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				page, err := eng.Judge.Decisions(c.ctx, by.Tenant, f)
				if err != nil {
					return err
				}
				return list(c, page, c.decisionColumns())
			},
		}),
		t.command(spec{
			use: "show ID", short: "Show a gate decision", effect: Reads, args: []string{"decision"},
			run: func(c *call, args []string) error {
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				found, err := eng.Judge.Decision(c.ctx, by.Tenant, args[0])
				if err != nil {
					return err
				}
				return c.show(found)
			},
		}),
	)
}

func (c *call) decisionColumns() []column[judge.GateDecision] {
	type D = judge.GateDecision
	return []column[D]{
		{title: "ID", text: func(d D) string { return d.DecisionID }},
		{title: "DECISION", text: func(d D) string { return string(d.Decision) }},
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

func (t *tree) policies() *cobra.Command {
	var l filter
	states := []string{"active", "revoked", "expired", "used"}
	rules := t.group("rules", `The "always" rules operators made`,
		t.command(spec{
			use: "list", short: "List the rules", effect: Reads,
			flags: func(f *pflag.FlagSet) { l.bind(f, states...) },
			run: func(c *call, _ []string) error {
				f, err := l.read(c, states...)
				if err != nil {
					return err
				}
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				all, err := eng.Judge.Rules(c.ctx, by.Tenant)
				if err != nil {
					return err
				}
				page, err := pick(all, f, func(r judge.Rule) traits {
					return traits{status: c.ruleState(r), agent: r.Agent, kind: action(r.Action), session: r.Session, at: r.CreatedAt,
						text: r.RuleID + " " + r.Scope + " " + action(r.Action) + " " + r.Agent + " " + r.Owner}
				})
				if err != nil {
					return err
				}
				return list(c, page, c.ruleColumns())
			},
		}),
		t.command(spec{
			use: "revoke ID", short: "End a rule", effect: Writes, role: Approver, confirm: ConfirmAsk, args: []string{"rule"},
			run: func(c *call, args []string) error {
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				gone, err := eng.Judge.RevokeRule(c.ctx, by, args[0])
				if err != nil {
					return err
				}
				return record(c, gone, c.ruleColumns())
			},
		}),
	)
	return t.group("policy", "What the judge goes by", rules)
}

func (c *call) ruleState(r judge.Rule) string {
	switch {
	case r.Revoked:
		return "revoked"
	case !r.ExpiresAt.IsZero() && !c.now().Before(r.ExpiresAt):
		return "expired"
	case r.Uses >= r.MaxUses:
		return "used"
	}
	return "active"
}

func (c *call) ruleColumns() []column[judge.Rule] {
	type R = judge.Rule
	return []column[R]{
		{title: "RULE", text: func(r R) string { return r.RuleID }},
		{title: "STATE", text: c.ruleState},
		{title: "SCOPE", text: func(r R) string { return r.Scope }},
		{title: "ACTION", most: 24, text: func(r R) string { return action(r.Action) }},
		{title: "AGENT", text: func(r R) string { return r.Agent }},
		{title: "USES", right: true, text: func(r R) string { return fmt.Sprintf("%d/%d", r.Uses, r.MaxUses) }},
		{title: "LEFT", right: true, text: func(r R) string { return short(max(0, r.ExpiresAt.Sub(c.now()))) }},
		{title: "OWNER", text: func(r R) string { return r.Owner }},
		{title: "SESSION", wide: true, text: func(r R) string { return r.Session }},
		{title: "GATE", wide: true, text: func(r R) string { return string(r.Gate) }},
		{title: "BACKTEST", wide: true, text: func(r R) string { return fmt.Sprintf("%d of %d would change", r.Backtest.Flips, r.Backtest.Checked) }},
		{title: "EXPIRES", wide: true, text: func(r R) string { return stamp(r.ExpiresAt) }},
	}
}
