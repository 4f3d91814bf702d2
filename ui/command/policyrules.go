package command

import (
	"fmt"

	"swarmdeck/engine/judge"
	"swarmdeck/ui/term"
)

func ruleColumns(c *call) []column[judge.Rule] {
	type R = judge.Rule
	return []column[R]{
		{title: "RULE", text: func(r R) string { return r.RuleID }},
		{title: "STATE", text: func(r R) string { return r.State(c.now()) }},
		{title: "USES", right: true, text: func(r R) string { return fmt.Sprintf("%d/%d", r.Uses, r.MaxUses) }},
		{title: "LEFT", right: true, text: func(r R) string { return short(max(0, r.ExpiresAt.Sub(c.now()))) }},
		{title: "OWNER", text: func(r R) string { return r.Owner }},
		{title: "GATE", wide: true, text: func(r R) string { return string(r.Gate) }},
		{title: "BACKTEST", wide: true, text: func(r R) string { return fmt.Sprintf("%d of %d would change", r.Backtest.Flips, r.Backtest.Checked) }},
		{title: "EXPIRES", wide: true, text: func(r R) string { return stamp(r.ExpiresAt) }},
		{title: "WHAT", text: func(r R) string { return term.Reveal(r.Line) }},
	}
}
