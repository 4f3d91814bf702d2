package command

import (
	"github.com/spf13/cobra"

	"swarmdeck/engine/core"
	"swarmdeck/engine/presence"
)

// operatorHere lists the cockpits that are open on this engine.
func (t *tree) operatorHere() *cobra.Command {
	return lists(t, spec{use: "here", short: "List who has a cockpit open on the running engine", effect: Reads}, nil, visitorColumns,
		func(c *call, f core.Filter) (core.Page[presence.Visitor], error) {
			return core.Pick(c.eng.Presence.Here(c.by.Tenant), nil, f, func(v presence.Visitor) core.Traits {
				return core.Traits{At: v.Since, Text: v.Name + " " + string(v.Door), Kind: string(v.Door)}
			})
		})
}

func visitorColumns(c *call) []column[presence.Visitor] {
	type V = presence.Visitor
	return []column[V]{
		{title: "OPERATOR", text: func(v V) string { return v.Name }},
		{title: "ROLE", text: func(v V) string { return v.Role }},
		{title: "DOOR", text: func(v V) string { return string(v.Door) }},
		{title: "SINCE", right: true, text: func(v V) string { return c.age(v.Since) }},
		{title: "LOOKS AT", text: func(v V) string { return v.Approval }},
	}
}
