package command

import (
	"cmp"
	"fmt"

	"swarmdeck/engine/judge"
)

func ruleColumns(c *call) []column[judge.Rule] {
	type R = judge.Rule
	return []column[R]{
		{title: "RULE", text: func(r R) string { return r.RuleID }},
		{title: "STATE", text: func(r R) string { return r.State(c.now()) }},
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

// action names what a rule is about: the tool, else the kind of action.
func action(a judge.Action) string { return cmp.Or(a.Tool, a.Kind) }
