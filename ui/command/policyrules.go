package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

func (t *tree) policyRules() *cobra.Command {
	return t.group("rules", `The "always" rules operators made`,
		lists(t, spec{use: "list", short: "List the rules", effect: Reads},
			[]string{"active", "revoked", "expired", "used"}, ruleColumns,
			func(c *call, f core.Filter) (core.Page[judge.Rule], error) {
				all, err := c.eng.Judge.Rules(c.ctx, c.by.Tenant)
				return core.Pick(all, err, f, c.ruleTraits)
			}),
		t.command(spec{
			use: "revoke ID", short: "End a rule", effect: Writes, role: Approver, confirm: ConfirmAsk, args: []string{"rule"},
			run: changes(ruleColumns, func(c *call, id string) (judge.Rule, error) { return c.eng.Judge.RevokeRule(c.ctx, c.by, id) }),
		}),
	)
}

func (c *call) ruleTraits(r judge.Rule) core.Traits {
	return core.Traits{
		Status: c.ruleState(r), Agent: r.Agent, Kind: action(r.Action), Session: r.Session, At: r.CreatedAt,
		Text: r.RuleID + " " + r.Scope + " " + action(r.Action) + " " + r.Agent + " " + r.Owner,
	}
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

func ruleColumns(c *call) []column[judge.Rule] {
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
